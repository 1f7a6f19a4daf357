"""Calibrate an exported model on rows kept aside from training, never on the benchmark.

    python -m training.calibrate FOLDER [--rows 6000]

Platt scaling of the quantised model's support logit to equal priors is folded into the head, so that the
product's threshold is 0.5. The stacker (logistic over `signals.FEATURES`) goes into config.json beside it.
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
from .row import Row, read_rows
from .score import onnx_scorer
from .settings import Settings, load_settings
from .signals import FEATURES, vector
from .sources import CLEAN_SETS

Floats = NDArray[np.float64]


def held_rows(settings: Settings, count: int) -> list[Row]:
    """Up to `count` held rows of the document phases, a fixed sample."""
    rows = [row for name in ("b", "c") for row in read_rows(settings.rows / f"{name}.jsonl.gz") if row.held]
    Random(settings.seed).shuffle(rows)
    return rows[:count]


def equal_weights(rows: Sequence[Row]) -> Floats:
    """Weights under which the two labels are equal inside every operator or set, and human sets count double."""
    counts = Counter((row.operator, row.support) for row in rows)
    sizes = Counter(row.operator for row in rows)
    out = []
    for row in rows:
        share = sizes[row.operator] ** 0.5 * (2.0 if row.operator in CLEAN_SETS else 1.0)
        out.append(share / counts[row.operator, row.support])
    return np.array(out) / np.mean(out)


def fold(folder: Path, scale: float, offset: float) -> None:
    """Replace the support logit z by scale * z + offset inside model.onnx."""
    path = folder / "model.onnx"
    model = onnx.load(str(path))
    for constant in model.graph.initializer:
        if constant.name in ("support.head", "support.bias"):
            value = numpy_helper.to_array(constant) * np.float32(scale)
            if constant.name == "support.bias":
                value = value + np.float32(offset)
            constant.CopyFrom(numpy_helper.from_array(value.astype(np.float32), constant.name))
    onnx.save(model, str(path))


def logistic(features: Floats, labels: Floats, weights: Floats) -> tuple[list[float], float]:
    """Coefficients and intercept of a weakly regularised logistic regression."""
    model = LogisticRegression(C=1.0, max_iter=500)
    model.fit(features, labels, sample_weight=weights)
    return [float(x) for x in model.coef_[0]], float(model.intercept_[0])


def report(rows: Sequence[Row], logits: Floats) -> dict[str, float]:
    """Balanced accuracy at 0 of every operator or set with at least 20 rows of each label, and their mean."""
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
    parser.add_argument("--rows", type=int, default=6000)
    options = parser.parse_args()
    folder: Path = options.folder
    rows = held_rows(load_settings(), options.rows)
    logits = onnx_scorer(folder)([(r.window, segment_b(r.claim, r.question, r.previous)) for r in rows]).astype(
        np.float64
    )
    labels, weights = np.array([row.support for row in rows], np.float64), equal_weights(rows)
    (scale,), offset = logistic(logits[:, :1], labels, weights)
    fold(folder, scale, offset)
    logits[:, 0] = scale * logits[:, 0] + offset
    features = np.array([vector(z, row.claim, row.window) for z, row in zip(logits.tolist(), rows, strict=True)])
    coefficients, intercept = logistic(features, labels, weights)
    value = json.loads((folder / "config.json").read_text())
    value["files"]["model.onnx"] = digest(folder / "model.onnx")
    value["thresholds"] = {"support": 0.5, "platt_scale": round(scale, 6), "platt_offset": round(offset, 6)}
    value["stacker"] = {
        "features": list(FEATURES),
        "coefficients": [round(x, 6) for x in coefficients],
        "intercept": round(intercept, 6),
    }
    value["held_out"] = {k: round(v, 1) for k, v in report(rows, logits[:, 0]).items()}
    (folder / "config.json").write_text(json.dumps(value, indent=1) + "\n")
    print(
        json.dumps(
            {"rows": len(rows), **value["thresholds"], "held_out": value["held_out"], "stacker": value["stacker"]}
        )
    )


if __name__ == "__main__":
    main()
