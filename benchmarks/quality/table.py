"""The markdown table of a run, beside the floor; and the flat keys for `benchmarks/results/latest.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.quality.items import IN_MEAN
from benchmarks.quality.protocol import Scored, SetReport, interval, mean_draws, report, set_score

SEED = 7
NOTE = "A public benchmark is a baseline, not a release certificate, and no threshold is universal."


def keys(reports: Sequence[SetReport], floors: Mapping[str, float]) -> dict[str, float]:
    """Flat figures, balanced accuracies in percent."""
    found: dict[str, float] = {}
    for row in reports:
        if row.balanced_accuracy is not None:
            found[f"quality.{row.dataset}.bacc"] = round(100 * row.balanced_accuracy, 2)
            found[f"quality.{row.dataset}.missing"] = round(row.missing, 4)
        if row.auc is not None:
            found[f"quality.{row.dataset}.auc"] = round(100 * row.auc, 2)
    means = [row.balanced_accuracy for row in reports if row.dataset in IN_MEAN and row.balanced_accuracy is not None]
    if len(means) == len(IN_MEAN):
        found["quality.mean_bacc"] = round(100 * sum(means) / len(means), 2)
        found["quality.floor_bacc"] = round(100 * sum(floors[name] for name in IN_MEAN) / len(IN_MEAN), 2)
    return found


def gain(ours: Mapping[str, Sequence[Scored]], theirs: Mapping[str, Sequence[Scored]]) -> tuple[float, float, float]:
    """Mean gain over another scorer of the same items: value and paired 95 % interval over contexts, in points."""
    value = float(np.mean([(set_score(ours[n]) or 0) - (set_score(theirs[n]) or 0) for n in ours]))
    # The same seed draws the same contexts for both, which makes the difference paired.
    low, high = interval(mean_draws(ours, seed=SEED) - mean_draws(theirs, seed=SEED))
    return 100 * value, 100 * low, 100 * high


def markdown(reports: Sequence[SetReport], floors: Mapping[str, float], title: str) -> str:
    """The table that README quotes."""
    lines = [
        f"### {title}",
        "",
        "| set | rows | balanced accuracy | 95 % | floor | AUC | F1 unsupported | Brier | ECE | no probability |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in reports:
        span = f"{100 * row.low:.1f}-{100 * row.high:.1f}" if row.low is not None and row.high is not None else ""
        name = row.dataset if row.dataset in IN_MEAN else f"{row.dataset} (shown only)"
        lines.append(
            f"| {name} | {row.rows} "
            f"| {_percent(row.balanced_accuracy)} | {span} | {_percent(floors.get(row.dataset))} "
            f"| {_percent(row.auc)} "
            f"| {_percent(row.f1)} | {row.brier:.3f} | {row.ece:.3f} | {row.missing:.1%} |"
        )
    lines += ["", "Inside strata:", ""]
    for row in reports:
        lines.append(f"- {row.dataset}: " + ", ".join(f"{k} {_percent(v)}" for k, v in row.strata.items()))
    return "\n".join([*lines, "", NOTE, ""])


def reports_of(sets: Mapping[str, Sequence[Scored]]) -> list[SetReport]:
    """One report per set, in the order given."""
    return [report(name, rows, seed=SEED) for name, rows in sets.items()]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
