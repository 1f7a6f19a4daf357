"""Calibrate an exported model on rows kept aside from training, never on the benchmark.

    python -m training.calibrate FOLDER [--rows 2500] [--signals support token_peak containment]

Each signal is Platt-scaled alone on human-labelled rows; the logits are averaged with equal weight and scaled once
more to equal priors, so that 0.5 is the threshold. The three weights and the bias go into the graph (`fusion`).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from sklearn.linear_model import LogisticRegression

from .export import digest
from .format import segment_b
from .fusion import SIGNALS
from .row import Row, read_rows
from .score import signals_of
from .settings import Settings, load_settings
from .sources import CLEAN_SETS

Floats = NDArray[np.float64]


def held_rows(settings: Settings, count: int) -> list[Row]:
    """Up to `count` held rows of human-labelled sets from the document phases, a fixed sample."""
    rows = [
        row
        for name in ("b", "c", "e")
        if (path := settings.rows / f"{name}.jsonl.gz").exists()
        for row in read_rows(path)
        if row.held and row.operator in CLEAN_SETS
    ]
    Random(settings.seed).shuffle(rows)
    return rows[:count]


def equal_weights(rows: Sequence[Row]) -> Floats:
    """Weights under which the two labels are equal inside every set and sets count by the root of their size."""
    counts = Counter((row.operator, row.support) for row in rows)
    sizes = Counter(row.operator for row in rows)
    out = [sizes[row.operator] ** 0.5 / counts[row.operator, row.support] for row in rows]
    return np.array(out) / np.mean(out)


def platt(values: Floats, labels: Floats, weights: Floats) -> tuple[float, float]:
    """(scale, offset) of a logistic regression on one signal, (n)."""
    model = LogisticRegression(C=100.0, max_iter=500)
    model.fit(values[:, None], labels, sample_weight=weights)
    return float(model.coef_[0][0]), float(model.intercept_[0])


def fuse(signals: Floats, labels: Floats, weights: Floats, chosen: Sequence[str]) -> tuple[Floats, float]:
    """(weight per signal, bias) of the averaged, rescaled Platt logits; signals (n, 3), unchosen ones get 0."""
    factors, bias = np.zeros(len(SIGNALS)), 0.0
    for name in chosen:
        column = SIGNALS.index(name)
        scale, offset = platt(signals[:, column], labels, weights)
        factors[column] = scale / len(chosen)
        bias += offset / len(chosen)
    scale, offset = platt(signals @ factors + bias, labels, weights)
    return factors * scale, bias * scale + offset


def set_fusion(folder: Path, factors: Floats, bias: float) -> None:
    """Write the weights and the bias into model.onnx."""
    path = folder / "model.onnx"
    model = onnx.load(str(path))
    values = {"fusion.weights": factors.astype(np.float32), "fusion.bias": np.array(bias, np.float32)}
    for constant in model.graph.initializer:
        if constant.name in values:
            constant.CopyFrom(numpy_helper.from_array(values[constant.name], constant.name))
    onnx.save(model, str(path))


def report(rows: Sequence[Row], logits: Floats) -> dict[str, float]:
    """Balanced accuracy at 0 of every set with at least 20 rows of each label, and their mean."""
    groups: dict[str, dict[int, list[bool]]] = defaultdict(lambda: {0: [], 1: []})
    for row, logit in zip(rows, logits, strict=True):
        groups[row.operator][row.support].append((logit > 0) == bool(row.support))
    out = {
        name: 50 * (float(np.mean(g[0])) + float(np.mean(g[1])))
        for name, g in sorted(groups.items())
        if min(len(g[0]), len(g[1])) >= 20
    }
    return {**out, "mean": float(np.mean(list(out.values())))}


def main() -> None:
    """Calibrate the folder in place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--signals", nargs="+", choices=SIGNALS, default=list(SIGNALS))
    options = parser.parse_args()
    folder: Path = options.folder
    rows = held_rows(load_settings(), options.rows)
    signals = signals_of(folder, [(r.window, segment_b(r.claim, r.question, r.previous)) for r in rows])
    labels, weights = np.array([row.support for row in rows], np.float64), equal_weights(rows)
    factors, bias = fuse(signals, labels, weights, options.signals)
    set_fusion(folder, factors, bias)
    value = json.loads((folder / "config.json").read_text())
    value["files"]["model.onnx"] = digest(folder / "model.onnx")
    value["thresholds"] = {"support": 0.5}
    value["fusion"] = {"signals": SIGNALS, "weights": [round(float(x), 5) for x in factors], "bias": round(bias, 5)}
    value["held_out"] = {k: round(v, 1) for k, v in report(rows, signals @ factors + bias).items()}
    (folder / "config.json").write_text(json.dumps(value, indent=1) + "\n")
    print(json.dumps({"rows": len(rows), "fusion": value["fusion"], "held_out": value["held_out"]}))


if __name__ == "__main__":
    main()
