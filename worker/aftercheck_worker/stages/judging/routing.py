"""Which answers go to the judge, and which of their claims it decides (architecture.md "Judge"). Pure.

Band: a verifiable claim whose calibrated probability lies in [low, high], or on which the evidence or the signals
conflict. Audit: a hash of the trace id, so that every process and every redelivery decides the same.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal

import msgspec

from aftercheck_schemas import Evaluation, Verdict

ROUTED_OUTCOMES: Final = frozenset({"grounded", "ungrounded"})
"""Abstentions, small talk and answers that nobody can judge are settled before the judge (trust S15)."""
CONFLICTS: Final = frozenset({"conflicting_sources", "low_margin"})
_FULL: Final = 1 << 56

Share = Literal["band", "all"]
Why = Literal["band", "audit", "all"]


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """Calibrated probabilities of "supported" between which the verifier is not sure, inclusive, 0..1 each.

    A narrow one by default: a judge costs far more than the verifier, and most of what the shipped one finds is not
    far from its cut.
    """

    low: float = 0.4
    high: float = 0.6


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Why an answer is judged.

    Attributes:
        why: `band` or `all` when the judge decides claims, `audit` when it is only compared.
        audit: the answer is in the audit sample, whatever else it is.
        probability: that an answer with these verdicts is judged, (0, 1]; rates weigh by its inverse.
        claims: ids of the claims that the judge decides.
    """

    why: Why
    audit: bool
    probability: float
    claims: frozenset[str] = frozenset()


def drawn(trace_id: str, name: str, share: float) -> bool:
    """True for `share` (0..1) of all trace ids; independent between names, and nested: a higher share keeps more."""
    digest = hashlib.blake2b(f"{name}:{trace_id}".encode("utf-8", "replace"), digest_size=7).digest()
    return int.from_bytes(digest) < share * _FULL


def uncertain(verdict: Verdict, band: Band) -> bool:
    """Is the claim in the band? What a rule decided without any evidence is not: there is nothing to quote."""
    if verdict.decided_by == "policy":
        return False
    if verdict.conflict or verdict.reason in CONFLICTS:
        return True
    if verdict.decided_by == "check":
        return verdict.status == "unclear"
    probability = verdict.supported_probability
    return probability is not None and band.low <= probability <= band.high


def route(evaluation: Evaluation, band: Band, *, share: Share, audit: float) -> Route | None:
    """Decide for one answer; None when no judge is needed.

    Args:
        evaluation: the verifier's.
        band: the evaluator's.
        share: `band`, or `all` for every answer and claim.
        audit: share of the answers that are judged to compare, 0..1.
    """
    if evaluation.outcome not in ROUTED_OUTCOMES:
        return None
    judgeable = [verdict for verdict in evaluation.verdicts if verdict.decided_by != "policy"]
    if not judgeable:
        return None
    in_audit = drawn(evaluation.trace_id, "audit", audit)
    if share == "all":
        every = frozenset(verdict.claim_id for verdict in judgeable)
        return Route(why="all", audit=True, probability=1.0, claims=every)
    claims = frozenset(verdict.claim_id for verdict in judgeable if uncertain(verdict, band))
    if claims:
        return Route(why="band", audit=in_audit, probability=1.0, claims=claims)
    return Route(why="audit", audit=True, probability=audit) if in_audit else None
