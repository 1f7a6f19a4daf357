"""Gates of the quantised model: paired against fp32, alone against in batches. Exit status 1 when one fails.

python -m training.gates FOLDER --weights FILE.pt [--limit 120]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray

from .bench_data import load_cases
from .bench_quick import pairs_of
from .encode import encode_texts, load_tokenizer
from .export import load_weights
from .format import MAX_TOKENS
from .model import Verifier, backbone_folder
from .score import Logits, Pairs, in_length_order, onnx_scorer, pad, signals_of, token_peak
from .settings import load_settings
from .window import DEFAULT_BUDGET_WORDS

PAIRED_LOWER = -0.7
BATCH_DIFFERENCE = 0.01
BATCHES = 10


def sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Logistic function."""
    return 1.0 / (1.0 + np.exp(-logits.astype(np.float64)))


def full_precision(weights: Path, folder: Path, pairs: Pairs) -> NDArray[np.float32]:
    """fp32 support logits of the unquantised weights, calibrated as the folder is."""
    model = Verifier()
    model.load_state_dict(load_weights(weights))
    model.eval()
    tokenizer = load_tokenizer(backbone_folder())
    fusion = json.loads((folder / "config.json").read_text())["fusion"]

    @torch.no_grad()
    def run(part: Pairs) -> Logits:
        ids, types, mask = pad(encode_texts(tokenizer, part, MAX_TOKENS))
        rows, tokens = model(*(torch.from_numpy(x) for x in (ids, types, mask)))
        peak = token_peak(tokens.numpy(), ids, types)
        return np.stack([rows[:, 0].numpy(), peak, np.zeros_like(peak)], 1).astype(np.float32)

    signals = in_length_order(pairs, 24, run)
    signals[:, 2] = signals_of(folder, pairs)[:, 2]  # containment reads token ids only: it has no precision
    return (signals @ np.array(fusion["weights"], np.float32) + np.float32(fusion["bias"])).astype(np.float32)


def paired(labels: NDArray[np.int64], whole: NDArray[np.float32], narrow: NDArray[np.float32]) -> tuple[float, float]:
    """(difference of accuracy in points, quantised - fp32, and the lower end of its 95 % bootstrap interval)."""
    gain = ((narrow > 0) == labels).astype(np.float64) - ((whole > 0) == labels)
    generator = np.random.default_rng(1)
    means = [gain[generator.integers(0, len(gain), len(gain))].mean() for _ in range(2000)]
    return 100 * float(gain.mean()), 100 * float(np.quantile(means, 0.025))


def batch_difference(folder: Path, pairs: Pairs, count: int = 20) -> float:
    """Greatest |dp| of a row scored alone and inside ten random batches."""
    random, one = Random(1), onnx_scorer(folder, batch=1)
    many = onnx_scorer(folder, batch=16)
    chosen = random.sample(range(len(pairs)), min(count, len(pairs)))
    alone = sigmoid(one([pairs[i] for i in chosen])[:, 0])
    worst = 0.0
    for _ in range(BATCHES):
        fellows = random.sample(range(len(pairs)), min(len(pairs), 3 * count))
        together = sigmoid(many([pairs[i] for i in [*chosen, *fellows]])[: len(chosen), 0])
        worst = max(worst, float(np.abs(together - alone).max()))
    return worst


def main() -> None:
    """Print the gates as json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=0)
    options = parser.parse_args()
    settings = load_settings()
    torch.set_num_threads(settings.threads)
    cases = load_cases(settings.data, limit=options.limit)
    pairs, owner = pairs_of(cases, DEFAULT_BUDGET_WORDS)
    labels = np.array([cases[i].supported for i in owner], np.int64)
    narrow = onnx_scorer(options.folder)(pairs)[:, 0]
    whole = full_precision(options.weights, options.folder, pairs)
    difference, lower = paired(labels, whole, narrow)
    result = {
        "rows": len(pairs),
        "paired_difference_points": round(difference, 3),
        "paired_lower_95_points": round(lower, 3),
        "greatest_dp_to_fp32": round(float(np.abs(sigmoid(narrow) - sigmoid(whole)).max()), 4),
        "greatest_dp_alone_to_batches": round(batch_difference(options.folder, pairs), 6),
        "megabytes": round(sum(p.stat().st_size for p in options.folder.iterdir()) / 1e6, 2),
    }
    print(json.dumps(result, indent=1))
    passed = lower >= PAIRED_LOWER and result["greatest_dp_alone_to_batches"] <= BATCH_DIFFERENCE
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
