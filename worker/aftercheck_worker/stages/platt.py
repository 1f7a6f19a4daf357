"""Probabilities of claims from raw scores, per claim type, fitted on labels: an artefact with its own proof.

Below `OWN` labels of a type its curve is the pooled one (Platt: logistic over the logit), above it its own: with
fewer labels an own curve is worse than a pooled one (notes on verification, 0.6). The threshold of `risk_control`
bounds the expected share of missed hallucinations by conformal risk control (Angelopoulos et al., arXiv:2208.02814,
theorem 1).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from aftercheck_schemas.vocabulary import ClaimType

OWN: Final = 100
"""Labels of a type from which it has a curve of its own."""
CLIP: Final = 1e-4
RIDGE: Final = 1e-2
"""Pull of slope and intercept towards 1 and 0, as that many labels: keeps a separable sample finite."""
BINS: Final = 15
STEPS: Final = 50
Floats = npt.NDArray[np.float64]


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """A claim with its raw probability of "supported", 0..1, and whether a human says that it is."""

    type: ClaimType
    probability: float
    supported: bool


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """A logistic over the logit of the raw probability, and how good it is on its own labels.

    Attributes:
        slope, intercept: of the logit.
        n: labels that it was fitted on.
        brier_before, brier_after: mean squared error, 0..1.
        ece_before, ece_after: expected calibration error over 15 bins of equal mass, 0..1; grows as n falls, so
            compare before with after, never one n with another.
    """

    slope: float
    intercept: float
    n: int
    brier_before: float
    brier_after: float
    ece_before: float
    ece_after: float

    def apply(self, probability: float) -> float:
        """Return the calibrated probability, 0..1."""
        return float(_sigmoid(self.slope * _logits(np.array([probability])) + self.intercept)[0])


class ClaimCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """All curves of one evaluator. `evaluator_version` says whose scores were labelled: it fits no other.

    Attributes:
        pooled: the curve of all types. by_type: own curves of types with at least `OWN` labels.
    """

    evaluator_version: str
    pooled: Curve
    by_type: dict[ClaimType, Curve] = {}

    @property
    def version(self) -> str:
        """sha256 hex over everything in it."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()

    def apply(self, kind: ClaimType, probability: float) -> float:
        """Return the calibrated probability of a claim of this type, 0..1."""
        return self.by_type.get(kind, self.pooled).apply(probability)


class RiskControl(msgspec.Struct, frozen=True, kw_only=True):
    """A cut on the calibrated probability with a marginal guarantee.

    The expected share of unsupported claims that are at or above `threshold`, over calibration sets and one new
    claim together, is at most `alpha`. It is no promise for a single calibration: with 50 labels the share of one
    spreads from .03 to .19 at alpha .10. It holds while new claims are exchangeable with the labelled ones.
    """

    alpha: float
    threshold: float
    n: int


def fit(labels: Sequence[Label], evaluator_version: str) -> ClaimCalibration:
    """Fit the pooled curve and those of types with enough labels.

    Raises:
        ValueError: no labels, or all of one class.
    """
    if len({label.supported for label in labels}) < 2:
        raise ValueError("calibration needs labels of both classes")
    groups: dict[ClaimType, list[Label]] = {}
    for label in labels:
        groups.setdefault(label.type, []).append(label)
    own: dict[ClaimType, Curve] = {
        kind: _curve(group)
        for kind, group in sorted(groups.items())
        if len(group) >= OWN and len({label.supported for label in group}) == 2
    }
    return ClaimCalibration(evaluator_version=evaluator_version, pooled=_curve(labels), by_type=own)


def risk_control(labels: Sequence[Label], calibration: ClaimCalibration, alpha: float) -> RiskControl:
    """Return the smallest cut whose missed share is at most `alpha` in expectation.

    Args:
        labels: a sample that the calibration was not fitted on.
        calibration: the curves.
        alpha: share of unsupported claims that may pass as supported, 0..1.

    Raises:
        ValueError: too few unsupported claims: (0 + 1) / (n + 1) is already above `alpha`.
    """
    scores = sorted(calibration.apply(one.type, one.probability) for one in labels if not one.supported)
    n = len(scores)
    allowed = int(np.floor(alpha * (n + 1) - 1 + 1e-9))  # (missed + 1) / (n + 1) <= alpha
    if allowed < 0:
        raise ValueError(
            f"{n} unsupported claims cannot show a share of {alpha:g}: label at least {1 / alpha - 1:.0f}"
        )
    passing = scores[n - 1 - allowed] if allowed < n else 0.0
    return RiskControl(alpha=alpha, threshold=float(np.nextafter(passing, 2.0)) if allowed < n else 0.0, n=n)


def brier(probabilities: Floats, supported: Floats) -> float:
    """Mean squared error, 0..1."""
    return float(np.mean((probabilities - supported) ** 2))


def calibration_error(probabilities: Floats, supported: Floats, bins: int = BINS) -> float:
    """Expected calibration error over bins of equal mass, 0..1."""
    order = np.argsort(probabilities, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    gaps = [len(part) * abs(float(probabilities[part].mean() - supported[part].mean())) for part in parts]
    return sum(gaps) / len(probabilities)


def _curve(labels: Sequence[Label]) -> Curve:
    raw = np.array([label.probability for label in labels], dtype=np.float64)
    supported = np.array([label.supported for label in labels], dtype=np.float64)
    slope, intercept = _logistic(_logits(raw), supported)
    after = _sigmoid(slope * _logits(raw) + intercept)
    return Curve(
        slope=slope,
        intercept=intercept,
        n=len(labels),
        brier_before=brier(raw, supported),
        brier_after=brier(after, supported),
        ece_before=calibration_error(raw, supported),
        ece_after=calibration_error(after, supported),
    )


def _logistic(logits: Floats, supported: Floats) -> tuple[float, float]:
    """Damped Newton with Platt's smoothed targets; the slope is kept from turning the ranking around."""
    positive = float(supported.sum())
    negative = len(supported) - positive
    high, low = (positive + 1) / (positive + 2), 1 / (negative + 2)
    targets: Floats = low + (high - low) * supported
    design = np.stack([logits, np.ones_like(logits)], axis=1)
    start = np.array([1.0, 0.0])

    def loss(weights: Floats) -> float:
        found = design @ weights
        error = np.logaddexp(0.0, found) - targets * found
        return float(error.sum() + RIDGE * ((weights - start) ** 2).sum() / 2)

    weights = start.copy()
    for _ in range(STEPS):
        found = _sigmoid(design @ weights)
        gradient = design.T @ (found - targets) + RIDGE * (weights - start)
        curvature = (design * (found * (1 - found))[:, None]).T @ design + RIDGE * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        size = next((s for s in 0.5 ** np.arange(30) if loss(weights - s * step) < loss(weights)), 0.0)
        weights = weights - size * step
        if size * float(np.abs(step).max()) < 1e-9:
            break
    return max(float(weights[0]), 0.0), float(weights[1])


def _logits(probabilities: Floats) -> Floats:
    clipped = np.clip(probabilities, CLIP, 1 - CLIP)
    return np.log(clipped / (1 - clipped))


def _sigmoid(logits: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
