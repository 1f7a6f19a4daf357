"""Balanced accuracy on the visible benchmark: macro over labels inside each stratum, averaged over strata.

python -m training.bench_quick [--limit 400] [--weights FILE.pt] [--onnx FOLDER] [--trial FOLDER]
[--words 170] [--sets NAME ...] [--detail]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from .bench_data import ENGLISH_SETS, Case, load_cases
from .format import segment_b
from .score import Score, containment, onnx_scorer, torch_scorer, trial_scorer
from .settings import load_settings
from .window import DEFAULT_BUDGET_WORDS, select_window


def pairs_of(cases: Sequence[Case], words: int, bare: bool = False) -> tuple[list[tuple[str, str]], list[int]]:
    """(window, segment B) of every claim, and the case number of each; `bare` leaves question and markers out."""
    pairs: list[tuple[str, str]] = []
    owner: list[int] = []
    for number, case in enumerate(cases):
        for claim in case.claims:
            query = f"{case.question} {claim}" if len(claim.split()) < 4 else claim
            window = select_window(query, case.question, case.passages, words)
            text = (
                query
                if bare
                else segment_b(claim, case.question, case.previous if claim[:4] in ("It i", "They") else "")
            )
            pairs.append((window, text))
            owner.append(number)
    return pairs, owner


def lowest(values: NDArray[np.float32], owner: Sequence[int], count: int) -> NDArray[np.float32]:
    """The least value of each case."""
    out = np.full(count, np.inf, np.float32)
    np.minimum.at(out, np.array(owner), values)
    return out


def by_stratum(cases: Sequence[Case], supported: NDArray[np.bool_]) -> dict[str, dict[str, float]]:
    """Set -> stratum -> balanced accuracy; strata with a class below five cases are skipped."""
    groups: dict[tuple[str, str], list[tuple[int, bool]]] = defaultdict(list)
    for case, decision in zip(cases, supported, strict=True):
        groups[case.dataset, case.stratum].append((case.supported, bool(decision)))
    out: dict[str, dict[str, float]] = defaultdict(dict)
    for (name, stratum), rows in groups.items():
        rates = []
        for label in (0, 1):
            hits = [decision == bool(label) for truth, decision in rows if truth == label]
            rates.append(float(np.mean(hits)) if len(hits) >= 5 else float("nan"))
        if not any(np.isnan(rates)):
            out[name][stratum] = 100 * float(np.mean(rates))
    return dict(out)


def summary(table: dict[str, dict[str, float]]) -> dict[str, float]:
    """Mean over strata of each set, and `mean` over the sets."""
    out = {name: float(np.mean(list(strata.values()))) for name, strata in table.items()}
    out["mean"] = float(np.mean(list(out.values())))
    return out


def best_threshold(cases: Sequence[Case], values: NDArray[np.float32]) -> tuple[float, dict[str, float]]:
    """The one threshold that favours the values most, and its summary."""
    grid = np.quantile(values, np.linspace(0.05, 0.95, 61))
    scored = [(summary(by_stratum(cases, values > t)), float(t)) for t in grid]
    best, threshold = max(scored, key=lambda item: item[0]["mean"])
    return threshold, best


def show(name: str, result: dict[str, float]) -> None:
    """One line."""
    print(f"{name:28s} " + " ".join(f"{k} {v:.1f}" for k, v in result.items()), flush=True)


def measure(
    name: str, score: Score, cases: Sequence[Case], words: int, bare: bool, detail: bool
) -> NDArray[np.float32]:
    """Score, print at threshold 0.5 and at the best one; the lowest support logit of each case."""
    pairs, owner = pairs_of(cases, words, bare)
    values = lowest(score(pairs)[:, 0], owner, len(cases))
    table = by_stratum(cases, values > 0)
    show(f"{name} at 0.5", summary(table))
    threshold, best = best_threshold(cases, values)
    show(f"{name} best ({threshold:+.2f})", best)
    if detail:
        for dataset, strata in table.items():
            print("   ", dataset, {k: round(v, 1) for k, v in strata.items()})
    return values


def main() -> None:
    """Measure what the arguments name, beside token containment."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--onnx", type=Path)
    parser.add_argument("--trial", type=Path)
    parser.add_argument("--words", type=int, default=DEFAULT_BUDGET_WORDS)
    parser.add_argument("--detail", action="store_true")
    parser.add_argument("--sets", nargs="*", default=list(ENGLISH_SETS))
    options = parser.parse_args()
    settings = load_settings()
    torch.set_num_threads(settings.threads)
    cases = load_cases(settings.data, tuple(options.sets), options.limit)
    print(f"{len(cases)} cases")
    floor = np.array([min(containment(c, case.passages) for c in case.claims) for case in cases], np.float32)
    threshold, best = best_threshold(cases, floor)
    show(f"containment best ({threshold:.2f})", best)
    if options.trial:
        measure("trial", trial_scorer(options.trial), cases, options.words, True, options.detail)
    if options.weights:
        state = torch.load(options.weights, weights_only=True)
        measure(
            options.weights.stem,
            torch_scorer(state.get("average", state)),
            cases,
            options.words,
            False,
            options.detail,
        )
    if options.onnx:
        measure(options.onnx.name, onnx_scorer(options.onnx), cases, options.words, False, options.detail)


if __name__ == "__main__":
    main()
