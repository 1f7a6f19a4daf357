"""The floor that a model has to beat: token containment with one threshold, fitted on training data."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

from benchmarks.quality.items import Item
from benchmarks.quality.protocol import Scored

_TOKEN = re.compile(r"\w+")
FIT_SETS = ("fever_nli_binary", "oanc_passage_qa", "factcg_cg2c", "mnli_binary")


def containment(context: Sequence[str], response: str) -> float:
    """Share of the response's distinct tokens that stand in the context, 0..1; 0 for an empty response."""
    tokens = set(_TOKEN.findall(response.lower()))
    seen = {token for part in context for token in _TOKEN.findall(part.lower())}
    return len(tokens & seen) / len(tokens) if tokens else 0.0


def fit_threshold(train: Path, rows_per_set: int = 4000) -> float:
    """Best threshold for the mean balanced accuracy over training sets; they share no context with the bench."""
    sets = [_training(train / f"{name}.jsonl.gz", rows_per_set) for name in FIT_SETS]
    candidates = [i / 100 for i in range(20, 100)]
    return max(candidates, key=lambda cut: sum(_balanced(rows, cut) for rows in sets))


def score(items: Iterable[Item], threshold: float) -> list[Scored]:
    """Score items so that `probability > 0.5` means containment above the fitted threshold."""
    return [
        Scored(
            id=item.id,
            dataset=item.dataset,
            stratum=item.stratum,
            lang=item.lang,
            group=item.group,
            supported=item.supported,
            probability=_rescale(containment(item.context, item.response), threshold),
        )
        for item in items
    ]


def _rescale(value: float, threshold: float) -> float:
    if value <= threshold:
        return 0.5 * value / threshold
    return 0.5 + 0.5 * (value - threshold) / (1 - threshold)


def _training(path: Path, limit: int) -> list[tuple[float, bool]]:
    rows: list[tuple[float, bool]] = []
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            row = cast("dict[str, str]", json.loads(line))
            rows.append((containment([row["premise"]], row["hypothesis"]), row["label"] == "entailment"))
            if len(rows) == limit:
                break
    return rows


def _balanced(rows: Sequence[tuple[float, bool]], threshold: float) -> float:
    positives = [value > threshold for value, supported in rows if supported]
    negatives = [value <= threshold for value, supported in rows if not supported]
    return (sum(positives) / len(positives) + sum(negatives) / len(negatives)) / 2
