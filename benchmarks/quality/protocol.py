"""The one protocol: a threshold of 0.5, balanced accuracy inside strata, strata averaged per set, sets averaged.

A missing probability counts as wrong in both classes. Intervals resample contexts, not rows, because rows that
share a context are not independent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

THRESHOLD = 0.5


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """A scored item. `probability` is of "supported", 0..1, or None when the pipeline gave none."""

    id: str
    dataset: str
    stratum: str
    lang: str
    group: str
    supported: bool
    probability: float | None


class SetReport(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one set; ratios 0..1, intervals 95 %. None where a stratum has one class only."""

    dataset: str
    rows: int
    strata: dict[str, float]
    balanced_accuracy: float | None
    low: float | None
    high: float | None
    auc: float | None
    f1: float
    brier: float
    ece: float
    missing: float
    positive_share: float


def balanced_accuracy(rows: Sequence[Scored], threshold: float = THRESHOLD) -> float | None:
    """Mean of the recalls of both classes, None when a class is absent."""
    hits, counts = [0, 0], [0, 0]
    for row in rows:
        counts[row.supported] += 1
        if row.probability is not None and (row.probability > threshold) == row.supported:
            hits[row.supported] += 1
    if not all(counts):
        return None
    return (hits[0] / counts[0] + hits[1] / counts[1]) / 2


def by_stratum(rows: Iterable[Scored]) -> dict[str, list[Scored]]:
    """Group rows by stratum, sorted by name."""
    found: dict[str, list[Scored]] = defaultdict(list)
    for row in rows:
        found[row.stratum].append(row)
    return dict(sorted(found.items()))


def set_score(rows: Sequence[Scored], threshold: float = THRESHOLD) -> float | None:
    """Average of the strata's balanced accuracies; strata with one class are left out."""
    scores = [balanced_accuracy(part, threshold) for part in by_stratum(rows).values()]
    known = [score for score in scores if score is not None]
    return sum(known) / len(known) if known else None


class _Table:
    """Counts per (context, stratum, class), so that a bootstrap draw is a matrix product."""

    def __init__(self, rows: Sequence[Scored], threshold: float) -> None:
        groups = {name: i for i, name in enumerate(sorted({row.group for row in rows}))}
        strata = {name: i for i, name in enumerate(sorted({row.stratum for row in rows}))}
        self.size = len(groups)
        self.hits = np.zeros((len(groups), len(strata), 2))
        self.counts = np.zeros_like(self.hits)
        for row in rows:
            where = groups[row.group], strata[row.stratum], int(row.supported)
            self.counts[where] += 1
            if row.probability is not None and (row.probability > threshold) == row.supported:
                self.hits[where] += 1

    def draws(self, generator: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Return `count` bootstrap values of the set's score; NaN where no stratum keeps both classes."""
        weights = generator.multinomial(self.size, np.full(self.size, 1 / self.size), size=count).astype(float)
        hits = np.tensordot(weights, self.hits, axes=(1, 0))
        counts = np.tensordot(weights, self.counts, axes=(1, 0))
        with np.errstate(invalid="ignore", divide="ignore"):
            per_stratum = (hits / counts).mean(axis=2)
        known = ~np.isnan(per_stratum)
        sums = np.where(known, per_stratum, 0).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(sums / known.sum(axis=1), dtype=np.float64)


def draws(
    rows: Sequence[Scored], *, seed: int, count: int = 1000, threshold: float = THRESHOLD
) -> NDArray[np.float64]:
    """Bootstrap draws of the set's score over contexts."""
    return _Table(rows, threshold).draws(np.random.default_rng(seed), count)


def interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """95 % percentile interval, NaN draws left out."""
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def mean_draws(sets: Mapping[str, Sequence[Scored]], *, seed: int, count: int = 1000) -> NDArray[np.float64]:
    """Draws of the mean over sets; each set is resampled on its own."""
    stacked = [draws(rows, seed=seed + i, count=count) for i, rows in enumerate(sets.values())]
    return np.asarray(np.nanmean(np.stack(stacked), axis=0), dtype=np.float64)


def auc(rows: Sequence[Scored]) -> float | None:
    """Area under the ROC curve by ranks, ties halved; None when a class is absent."""
    known = [row for row in rows if row.probability is not None]
    labels = np.array([row.supported for row in known], dtype=bool)
    if not len(labels) or labels.all() or not labels.any():
        return None
    scores = np.array([row.probability for row in known], dtype=float)
    values, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    del values
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[inverse]
    positives = int(labels.sum())
    rank_sum = float(ranks[labels].sum())
    return (rank_sum - positives * (positives + 1) / 2) / (positives * (len(labels) - positives))


def f1_unsupported(rows: Sequence[Scored]) -> float:
    """F1 of the class "unsupported"; a missing probability counts as not flagged."""
    flagged = [row for row in rows if row.probability is not None and row.probability <= THRESHOLD]
    right = sum(not row.supported for row in flagged)
    bad = sum(not row.supported for row in rows)
    return 2 * right / (len(flagged) + bad) if flagged or bad else 0.0


def brier(rows: Sequence[Scored]) -> float:
    """Mean squared error of the known probabilities."""
    errors = [(row.probability - row.supported) ** 2 for row in rows if row.probability is not None]
    return sum(errors) / len(errors) if errors else 1.0


def ece(rows: Sequence[Scored], bins: int = 15) -> float:
    """Expected calibration error with equal-mass bins. Never compare it across different n."""
    known = sorted((row.probability, row.supported) for row in rows if row.probability is not None)
    if not known:
        return 1.0
    error = 0.0
    for part in np.array_split(np.array(known, dtype=float), min(bins, len(known))):
        error += abs(float(part[:, 0].mean() - part[:, 1].mean())) * len(part) / len(known)
    return error


def report(dataset: str, rows: Sequence[Scored], *, seed: int = 7) -> SetReport:
    """All figures of one set."""
    strata = {name: balanced_accuracy(part) for name, part in by_stratum(rows).items()}
    score = set_score(rows)
    low, high = interval(draws(rows, seed=seed)) if score is not None else (None, None)
    return SetReport(
        dataset=dataset,
        rows=len(rows),
        strata={name: value for name, value in strata.items() if value is not None},
        balanced_accuracy=score,
        low=low,
        high=high,
        auc=auc(rows),
        f1=f1_unsupported(rows),
        brier=brier(rows),
        ece=ece(rows),
        missing=sum(row.probability is None for row in rows) / len(rows),
        positive_share=sum(row.supported for row in rows) / len(rows),
    )
