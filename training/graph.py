"""The verifier as an ONNX graph with 8-bit weights and fp32 activations, written node by node.

Weight-only: a score cannot depend on the rows beside it in a batch, and no CPU needs VNNI to agree. Linear
weights are int8 with one scale per output column, widened once when the session loads; embedding rows are
int8 with one scale per row, widened after the lookup. Biases, norms and heads stay fp32.
"""

from __future__ import annotations

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from .fusion import add_fusion

Array = NDArray[np.float32]
LAYERS = 6
HEADS = 12
EPSILON = 1e-12
OPSET = 20
MICROSOFT = "com.microsoft"


class Graph:
    """Collects nodes and initialisers; every method returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        """An initialiser."""
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def op(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: object) -> str:
        """A node with one output."""
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def narrow(self, name: str, weight: Array) -> str:
        """A linear weight (in, out) as int8 columns with fp32 scales; the output name is its fp32 form."""
        scale = np.maximum(np.abs(weight).max(0), 1e-8) / 127.0
        codes = self.constant(f"{name}.int8", np.round(weight / scale).astype(np.int8))
        factor = self.constant(f"{name}.scale", scale.astype(np.float32))
        wide = self.op("Cast", [codes], f"{name}.cast", to=TensorProto.FLOAT)
        return self.op("Mul", [wide, factor], f"{name}.weight")

    def linear(self, value: str, name: str, weight: Array, bias: Array) -> str:
        """Value @ weight + bias."""
        product = self.op("MatMul", [value, self.narrow(name, weight)], f"{name}.product")
        return self.op("Add", [product, self.constant(f"{name}.bias", bias)], name)

    def norm(self, value: str, name: str, weight: Array, bias: Array) -> str:
        """Layer normalisation over the last axis."""
        inputs = [value, self.constant(f"{name}.gain", weight), self.constant(f"{name}.shift", bias)]
        return self.op("LayerNormalization", inputs, name, axis=-1, epsilon=EPSILON)


def _embed(graph: Graph, state: dict[str, Array]) -> str:
    """Word (int8 rows), position and type embeddings, normalised: (n, length, width)."""
    words = state["encoder.embeddings.word_embeddings.weight"]
    scale = np.maximum(np.abs(words).max(1, keepdims=True), 1e-8) / 127.0
    codes = graph.constant("words.int8", np.round(words / scale).astype(np.int8))
    factors = graph.constant("words.scale", scale.astype(np.float32))
    rows = graph.op(
        "Cast", [graph.op("Gather", [codes, "input_ids"], "words.codes")], "words.cast", to=TensorProto.FLOAT
    )
    word = graph.op("Mul", [rows, graph.op("Gather", [factors, "input_ids"], "words.factor")], "words")
    table = graph.constant("types.table", state["encoder.embeddings.token_type_embeddings.weight"])
    kind = graph.op("Gather", [table, "token_type_ids"], "types")
    shape = graph.op("Shape", ["input_ids"], "shape")
    zero, one = (graph.constant(n, np.array([v], np.int64)) for n, v in (("zero", 0), ("one", 1)))
    length = graph.op("Gather", [shape, one], "length")
    positions = graph.constant("positions.table", state["encoder.embeddings.position_embeddings.weight"])
    place = graph.op("Slice", [positions, zero, length, zero], "positions")
    total = graph.op("Add", [graph.op("Add", [word, kind], "words.typed"), place], "embedded")
    return graph.norm(
        total,
        "embedded.norm",
        state["encoder.embeddings.LayerNorm.weight"],
        state["encoder.embeddings.LayerNorm.bias"],
    )


def _layer(graph: Graph, state: dict[str, Array], number: int, value: str, mask: str) -> str:
    """One transformer layer, post-norm."""
    prefix = f"encoder.encoder.layer.{number}"

    def part(name: str) -> tuple[Array, Array]:
        return state[f"{prefix}.{name}.weight"], state[f"{prefix}.{name}.bias"]

    name = f"layer{number}"
    inputs = [
        graph.linear(value, f"{name}.{key}", part(f"attention.self.{key}")[0].T, part(f"attention.self.{key}")[1])
        for key in ("query", "key", "value")
    ]
    mixed = graph.op("MultiHeadAttention", [*inputs, "", mask], f"{name}.mixed", MICROSOFT, num_heads=HEADS)
    weight, bias = part("attention.output.dense")
    joined = graph.op("Add", [graph.linear(mixed, f"{name}.joined", weight.T, bias), value], f"{name}.joined.sum")
    value = graph.norm(joined, f"{name}.joined.norm", *part("attention.output.LayerNorm"))
    weight, bias = part("intermediate.dense")
    inner = graph.op("Gelu", [graph.linear(value, f"{name}.inner", weight.T, bias)], f"{name}.gelu")
    weight, bias = part("output.dense")
    total = graph.op("Add", [graph.linear(inner, f"{name}.outer", weight.T, bias), value], f"{name}.outer.sum")
    return graph.norm(total, f"{name}.norm", *part("output.LayerNorm"))


def _pool(graph: Graph, hidden: str) -> str:
    """Mean over all tokens, mean and maximum over segment B: (n, 3 * width)."""
    last = graph.constant("last", np.array([-1], np.int64))
    middle = graph.constant("middle", np.array([1], np.int64))
    every = graph.op(
        "Unsqueeze", [graph.op("Cast", ["attention_mask"], "mask.float", to=TensorProto.FLOAT), last], "every"
    )
    kinds = graph.op(
        "Unsqueeze", [graph.op("Cast", ["token_type_ids"], "types.float", to=TensorProto.FLOAT), last], "kinds"
    )
    claim = graph.op("Mul", [kinds, every], "claim")
    means = []
    for name, weight in (("all", every), ("claim", claim)):
        total = graph.op(
            "ReduceSum", [graph.op("Mul", [hidden, weight], f"{name}.kept"), middle], f"{name}.sum", keepdims=0
        )
        count = graph.op("ReduceSum", [weight, middle], f"{name}.count", keepdims=0)
        floor = graph.op("Max", [count, graph.constant(f"{name}.one", np.array(1.0, np.float32))], f"{name}.floor")
        means.append(graph.op("Div", [total, floor], f"{name}.mean"))
    outside = graph.op("Sub", [graph.constant("unit", np.array(1.0, np.float32)), claim], "outside")
    far = graph.op("Mul", [outside, graph.constant("far", np.array(1e4, np.float32))], "outside.far")
    peak = graph.op("ReduceMax", [graph.op("Sub", [hidden, far], "claim.only"), middle], "claim.max", keepdims=0)
    return graph.op("Concat", [*means, peak], "pooled", axis=-1)


def _heads(graph: Graph, state: dict[str, Array], pooled: str, hidden: str) -> None:
    """The three outputs; the two row heads are columns of one linear layer."""
    for number, name in enumerate(("support", "contradiction", "tokens")):
        source, head, column = (hidden, "tokens", 0) if name == "tokens" else (pooled, "rows", number)
        weight = graph.constant(f"{name}.head", state[f"{head}.weight"][column : column + 1].T)
        product = graph.op("MatMul", [source, weight], f"{name}.product")
        bias = graph.constant(f"{name}.bias", state[f"{head}.bias"][column : column + 1])
        output = "support.raw" if name == "support" else name
        graph.op("Squeeze", [graph.op("Add", [product, bias], f"{name}.deep"), "last"], output)


def build_graph(state: dict[str, Array], token_weights: Array) -> onnx.ModelProto:
    """The whole model: int64 (n, length) in; logits out: support (n), contradiction (n), tokens (n, length).

    Beside them `signals` (n, 3), what `fusion` adds up to `support`.
    """
    graph = Graph()
    value = _embed(graph, state)
    mask = graph.op("Cast", ["attention_mask"], "mask.int", to=TensorProto.INT32)
    for number in range(LAYERS):
        value = _layer(graph, state, number, value, mask)
    pooled = _pool(graph, value)
    _heads(graph, state, pooled, value)
    add_fusion(graph, "support.raw", token_weights)
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, ["n", "length"])
        for n in ("input_ids", "token_type_ids", "attention_mask")
    ]
    shapes: dict[str, list[str]] = {
        "support": ["n"],
        "contradiction": ["n"],
        "tokens": ["n", "length"],
        "signals": ["n", "three"],
    }
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in shapes.items()]
    body = helper.make_graph(graph.nodes, "verifier", inputs, outputs, list(graph.constants.values()))
    domains = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(body, opset_imports=domains, ir_version=9, producer_name="aftercheck")
