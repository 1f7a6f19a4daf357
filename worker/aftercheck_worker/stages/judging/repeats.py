"""Several judgements of the same claims: another order of evidence each time, majority, minimum and median (R47)."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from aftercheck_schemas import ClaimJudgement, Evidence
from aftercheck_schemas.vocabulary import ClaimStatus
from aftercheck_worker.stages.judging.reply import JudgedClaim

T = TypeVar("T")


def order_of(items: Sequence[T], trace_id: str, repeat: int) -> list[T]:
    """Deterministic permutation for one repeat; repeat 0 keeps the order that the model saw."""
    ordered = list(items)
    if repeat:
        seed = hashlib.blake2b(f"{trace_id}:{repeat}".encode(), digest_size=8).digest()
        random.Random(int.from_bytes(seed)).shuffle(ordered)  # noqa: S311 - a reproducible order, not a secret
    return ordered


def majority(claim_id: str, repeats: Sequence[JudgedClaim]) -> ClaimJudgement:
    """Fold the repeats of one claim; repeats without a valid verdict do not vote."""
    valid = [judged for judged in repeats if judged.status is not None]
    votes: Counter[ClaimStatus] = Counter(judged.status for judged in valid if judged.status is not None)
    if not votes:
        return ClaimJudgement(claim_id=claim_id, status=None)
    ranked = votes.most_common(2)
    tie = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
    status: ClaimStatus = "unclear" if tie else ranked[0][0]
    agreeing = [judged for judged in valid if judged.status == status]
    return ClaimJudgement(
        claim_id=claim_id,
        status=status,
        confidence=sum(judged.confidence for judged in agreeing) / len(agreeing) if agreeing else 0.5,
        statuses=tuple(judged.status for judged in valid if judged.status is not None),
        evidence=_distinct([part for judged in agreeing for part in judged.evidence]),
        rationale=agreeing[0].rationale if agreeing else "the repeats disagree",
    )


def scores(repeats: Sequence[Sequence[JudgedClaim]]) -> tuple[float, ...]:
    """Faithfulness of each repeat: supported / claims asked.

    A repeat that lacks a valid verdict on any claim is left out: one answered claim of three would be a false 1.
    """
    return tuple(
        sum(judged.status == "supported" for judged in repeat) / len(repeat)
        for repeat in repeats
        if repeat and all(judged.status is not None for judged in repeat)
    )


def disagreement(claims: Sequence[ClaimJudgement]) -> float:
    """Share of votes that differ from their claim's status, 0..1."""
    votes = [status == claim.status for claim in claims for status in claim.statuses]
    return 1 - sum(votes) / len(votes) if votes else 0.0


def _distinct(parts: Sequence[Evidence]) -> tuple[Evidence, ...]:
    return tuple({(part.source_id, part.start, part.end): part for part in parts}.values())
