"""The last layer of the release: raw support, token peak and weighted containment, added with three weights.

    support = w0 * raw support logit + w1 * token peak + w2 * containment + bias

All three are computed inside the ONNX graph, so that the product needs no code of its own. The weights and the
bias are initialisers (`fusion.weights`, `fusion.bias`) that `calibrate` sets on rows kept aside from training.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from .encode import Encoded

if TYPE_CHECKING:
    from .graph import Graph

CLAIM_ID = 6
"""Token id of the claim's marker."""
FIRST_WORD_ID = 104
"""Ids below are padding, markers and special tokens."""
VOCABULARY = 30522
SIGNALS = ("support", "token_peak", "containment")


def token_weights(path: Path) -> NDArray[np.float32]:
    """Inverse document frequency of every token id over the windows of encoded rows, (vocabulary)."""
    data = Encoded.load(path)
    found = np.zeros(VOCABULARY)
    for row in range(len(data)):
        start = int(data.offsets[row])
        found[np.unique(data.ids[start : start + int(data.start_b[row])])] += 1
    return np.log((len(data) + 1) / (found + 1)).astype(np.float32)


def _claim_mask(graph: Graph) -> str:
    """1.0 at the word pieces of the claim itself (after its marker), (n, length)."""
    marker = graph.op("Equal", ["input_ids", graph.constant("claim.id", np.array(CLAIM_ID, np.int64))], "claim.at")
    after = graph.op(
        "CumSum", [graph.op("Cast", [marker], "claim.at.int", to=TensorProto.INT32), "axis.one"], "claim.after"
    )
    begun = graph.op("Greater", [after, graph.constant("none", np.array(0, np.int32))], "claim.begun")
    first = graph.constant("first.word", np.array(FIRST_WORD_ID - 1, np.int64))
    word = graph.op("Greater", ["input_ids", first], "is.word")
    return graph.op("Cast", [graph.op("And", [begun, word], "claim.word")], "claim.words", to=TensorProto.FLOAT)


def _peak(graph: Graph, words: str) -> str:
    """Greatest mean of three neighbouring token logits of the claim, (n)."""
    means = []
    for name, value in (("kept", graph.op("Mul", ["tokens", words], "peak.logits")), ("count", words)):
        deep = graph.op("Unsqueeze", [value, "axis.ones"], f"peak.{name}.deep")
        attributes = {"kernel_shape": [3], "pads": [1, 1], "count_include_pad": 1}
        pooled = graph.op("AveragePool", [deep], f"peak.{name}.pool", **attributes)
        means.append(graph.op("Squeeze", [pooled, "axis.ones"], f"peak.{name}"))
    floor = graph.op("Max", [means[1], graph.constant("third", np.array(1 / 3, np.float32))], "peak.floor")
    mean = graph.op("Div", [means[0], floor], "peak.mean")
    outside = graph.op("Sub", [graph.constant("peak.unit", np.array(1.0, np.float32)), words], "peak.outside")
    away = graph.op("Mul", [outside, graph.constant("peak.far", np.array(1e4, np.float32))], "peak.away")
    inside = graph.op("Sub", [mean, away], "peak.inside")
    greatest = graph.op("ReduceMax", [inside, "axis.ones"], "peak.max", keepdims=0)
    return graph.op("Max", [greatest, graph.constant("peak.least", np.array(-20.0, np.float32))], "peak")


def _containment(graph: Graph, words: str, weights: NDArray[np.float32]) -> str:
    """Weighted share of the claim's word pieces that stand in segment A, (n)."""
    table = graph.constant("token.weights", weights)
    weight = graph.op("Mul", [graph.op("Gather", [table, "input_ids"], "token.weight"), words], "containment.weight")
    left = graph.op("Unsqueeze", ["input_ids", "axis.twos"], "ids.left")
    right = graph.op("Unsqueeze", ["input_ids", "axis.ones"], "ids.right")
    same = graph.op("Cast", [graph.op("Equal", [left, right], "ids.same")], "ids.match", to=TensorProto.FLOAT)
    other = graph.op("Sub", ["mask.float", "types.float"], "window.mask")
    masked = graph.op("Mul", [same, graph.op("Unsqueeze", [other, "axis.ones"], "window.wide")], "ids.window")
    found = graph.op("ReduceMax", [masked, "axis.twos"], "containment.found", keepdims=0)
    kept = graph.op("Mul", [weight, found], "containment.kept")
    sums = [graph.op("ReduceSum", [v, "axis.ones"], f"{v}.sum", keepdims=0) for v in (kept, weight)]
    floor = graph.op("Max", [sums[1], graph.constant("containment.least", np.array(1e-3, np.float32))], "whole")
    return graph.op("Div", [sums[0], floor], "containment")


def add_fusion(graph: Graph, raw: str, weights: NDArray[np.float32]) -> None:
    """Add `signals` (n, 3) and `support` (n) to a graph that has `tokens`, `mask.float` and `types.float`."""
    graph.constant("axis.one", np.array(1, np.int64))
    graph.constant("axis.ones", np.array([1], np.int64))
    graph.constant("axis.twos", np.array([2], np.int64))
    words = _claim_mask(graph)
    values = [raw, _peak(graph, words), _containment(graph, words, weights)]
    deep = [graph.op("Unsqueeze", [value, "axis.ones"], f"{value}.column") for value in values]
    signals = graph.op("Concat", deep, "signals", axis=1)
    factors = graph.constant("fusion.weights", np.array([1.0, 0.0, 0.0], np.float32))
    total = graph.op("MatMul", [signals, factors], "fusion.sum")
    graph.op("Add", [total, graph.constant("fusion.bias", np.array(0.0, np.float32))], "support")
