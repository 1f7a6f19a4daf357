"""What a judged answer adds to the totals: RAG triad by method, agreement, who had the last word (R21, R29).

Answers are judged with unequal probabilities, so everything that estimates traffic is weighted by
1 / (sampling probability x probability of being judged). Agreement is counted apart for the audit sample, which is a
plain random sample, and for answers that were judged only because they are in the band.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import msgspec

from aftercheck_schemas import Judgement, Verdict
from aftercheck_schemas.evaluation import Evaluation
from aftercheck_worker.storage import totals

Increment = tuple[str, float, str]
"""Metric, value, key."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer went through the judge.

    Attributes:
        why: `band`, `audit` or `all`. audit: in the random audit sample.
        probability: that an answer like this is judged, (0, 1].
        judgement: None when the judge failed.
        verifier_faithfulness: what the verifier alone said, 0..1.
        first: the verifier's own verdicts on the claims that the judge decided, to be shown beside the judge's.
        agreed, disagreed: claims that both decided. refused: judged statuses that the cross-check stopped.
    """

    why: str
    audit: bool
    probability: float
    judgement: Judgement | None = None
    verifier_faithfulness: float | None = None
    first: tuple[Verdict, ...] = ()
    agreed: int = 0
    disagreed: int = 0
    refused: int = 0

    @property
    def document(self) -> dict[str, object]:
        """What is stored with the evaluation: how it was chosen, and what the verifier alone said."""
        return {
            "why": self.why,
            "audit": self.audit,
            "probability": self.probability,
            "verifier": self.verifier_faithfulness,
            "first": {one.claim_id: {"status": one.status, "confidence": one.confidence} for one in self.first},
        }


def finalised(found: Evaluation, judged: Judged | None) -> Iterator[Increment]:
    """Counts of every finished answer, late ones included."""
    yield totals.FINALISED, 1.0, found.decided_by
    if judged is not None:
        yield totals.JUDGE_ANSWERS, 1.0, "judged" if judged.judgement is not None else "fallback"


def measured(judged: Judged | None, weight: float) -> Iterator[Increment]:
    """Counts of answers that enter rates. `weight`: 1 / sampling probability."""
    if judged is None or judged.judgement is None:
        return
    found, inverse = judged.judgement, weight / judged.probability
    yield from _scored(totals.GROUNDEDNESS, "encoder", judged.verifier_faithfulness, inverse)
    median = statistics.median(found.faithfulness) if found.faithfulness else None
    yield from _scored(totals.GROUNDEDNESS, "judge", median, inverse)
    yield from _scored(totals.CONTEXT_RELEVANCE, "judge", found.context_relevance, inverse)
    yield from _scored(totals.ANSWER_RELEVANCE, "judge", found.answer_relevance, inverse)
    prefix = "" if judged.audit else "band_"
    yield totals.JUDGED, judged.agreed, f"{prefix}agreed"
    yield totals.JUDGED, judged.disagreed, f"{prefix}disagreed"
    yield totals.JUDGE_REFUSED, judged.refused, ""
    yield totals.JUDGE_VOID_QUOTES, found.void_quotes, ""
    if found.repeats > 1:
        yield totals.REPEATS_SUM, found.disagreement, ""
        yield totals.REPEATS_COUNT, 1.0, ""


def _scored(names: tuple[str, str, str], method: str, score: float | None, weight: float) -> Iterator[Increment]:
    if score is not None:
        yield names[0], weight * score, method
        yield names[1], weight, method
        yield names[2], weight * score * score, method
