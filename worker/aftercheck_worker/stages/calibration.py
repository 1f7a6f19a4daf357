"""Probabilities of answers from probabilities of claims.

The least claim probability of an answer with seven true sentences is much lower than that of one with a single true
sentence, so a cut of 0.5 on the minimum is unfair to long answers (notes on verification, corrections). A logistic
over (least, second least, mean logit, log n), fitted per set of weights, gives the answer its own probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

CLIP: Final = 1e-4


class AnswerCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """Coefficients of the logistic over an answer's claims; an artefact that belongs to one set of weights.

    Attributes:
        least, second, mean: weights of the claim logits. size: weight of ln(n). intercept: the constant.
        from_claims: answers of fewer claims keep their least probability.
        rows: labelled answers that it was fitted on. brier_before, brier_after: on answers left out of the fit, 0..1.
    """

    least: float
    second: float
    mean: float
    size: float
    intercept: float
    from_claims: int = 2
    rows: int = 0
    brier_before: float = 0.0
    brier_after: float = 0.0


def features(probabilities: Sequence[float]) -> tuple[float, float, float, float]:
    """Least logit, second least logit, mean logit and ln(n) of an answer's claims.

    Args:
        probabilities: of "supported", 0..1 each, at least one.
    """
    logits = sorted(math.log(p / (1 - p)) for p in (min(1 - CLIP, max(CLIP, p)) for p in probabilities))
    second = logits[1] if len(logits) > 1 else logits[0]
    return logits[0], second, sum(logits) / len(logits), math.log(len(logits))


def answer_probability(probabilities: Sequence[float], calibration: AnswerCalibration | None) -> float | None:
    """Probability that the whole answer is supported, 0..1; None without any claim probability.

    A short answer is as good as its least claim (a single claim is its own answer), and so is every answer without a
    calibration.
    """
    if not probabilities:
        return None
    if calibration is None or len(probabilities) < max(2, calibration.from_claims):
        return min(probabilities)
    least, second, mean, size = features(probabilities)
    logit = (
        calibration.least * least
        + calibration.second * second
        + calibration.mean * mean
        + calibration.size * size
        + calibration.intercept
    )
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, logit))))
