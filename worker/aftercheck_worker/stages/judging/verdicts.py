"""Folds a judgement into the verifier's verdicts, claim by claim (architecture.md "Judge", trust S12, S13). Pure.

The judge alone never makes a claim supported. Its `supported` counts when a quote stands in its source and the same
verifier, shown nothing but the quoted sources, neither contradicts the claim nor finds it far from supported; what a
deterministic check has convicted stays convicted. A claim without a valid verdict keeps the verifier's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from aftercheck_schemas import ClaimJudgement, EvaluatorFailure, Judgement, Verdict
from aftercheck_schemas.evaluation import DecidedBy
from aftercheck_schemas.vocabulary import ClaimStatus

FLOOR: Final = 0.35
"""Least support that the verifier must find in the quoted sources before a judge's `supported` counts."""
BAD: Final[frozenset[ClaimStatus]] = frozenset({"contradicted", "not_found"})
MAX_CONFIDENCE: Final = 0.99
SUPPORTED_FROM: Final = 0.75
NOT_FOUND_TO: Final = 0.25
CONTRADICTED_TO: Final = 0.1
"""A judge has no calibrated probability: the verifier's is moved to the side of the judge's status, no further."""


class Folded(msgspec.Struct, frozen=True, kw_only=True):
    """Verdicts after the judge.

    Attributes:
        verdicts: one per verdict of the verifier, in its order.
        decided_by: `judge` when it decided a claim, `verifier_fallback` when it had to decide and said nothing valid
            of any such claim, otherwise `verifier`.
        agreed, disagreed: claims of which both say a status, by whether it is the same.
        refused: claims whose judged status the cross-check did not let pass.
        failures: one per claim that the judge had to decide and did not.
    """

    verdicts: tuple[Verdict, ...]
    decided_by: DecidedBy
    agreed: int = 0
    disagreed: int = 0
    refused: int = 0
    failures: tuple[EvaluatorFailure, ...] = ()


def fold(
    verdicts: Sequence[Verdict],
    judgement: Judgement,
    checked: Mapping[str, Verdict],
    decides: frozenset[str] | None = None,
) -> Folded:
    """Return the final verdicts.

    Args:
        verdicts: the verifier's, one per verifiable claim.
        judgement: of the same claims; missing ones count as failed.
        checked: the cross-check: by claim id, the verdict of the same verifier on the quoted sources alone. A claim
            whose judged status needs a quote and that is missing here cannot take that status.
        decides: ids of the claims that the judge decides; None for all, empty for an audit.
    """
    judged = {claim.claim_id: claim for claim in judgement.claims}
    out: list[Verdict] = []
    agreed = disagreed = refused = 0
    failed: list[str] = []
    for verdict in verdicts:
        found = judged.get(verdict.claim_id)
        mine = decides is None or verdict.claim_id in decides
        if found is None or found.status is None:
            if mine:
                failed.append(verdict.claim_id)
            out.append(fallback(verdict) if mine else verdict)
            continue
        agreed += found.status == verdict.status
        disagreed += found.status != verdict.status
        final = _decided(verdict, found, checked.get(verdict.claim_id)) if mine else verdict
        refused += mine and final.status != found.status
        out.append(final)
    asked = len(verdicts) if decides is None else sum(verdict.claim_id in decides for verdict in verdicts)
    return Folded(
        verdicts=tuple(out),
        decided_by="verifier" if not asked else "verifier_fallback" if len(failed) == asked else "judge",
        agreed=agreed,
        disagreed=disagreed,
        refused=refused,
        failures=tuple(
            EvaluatorFailure(evaluator="faithfulness", reason="judge_unparsable", detail=claim_id)
            for claim_id in failed
        ),
    )


def fallback(verdict: Verdict) -> Verdict:
    """The verifier's verdict on a claim that a judge should have decided; a check's or a rule's stays theirs."""
    return msgspec.structs.replace(verdict, decided_by="verifier_fallback") if _by_verifier(verdict) else verdict


def _by_verifier(verdict: Verdict) -> bool:
    return verdict.decided_by == "verifier"


def _decided(verdict: Verdict, found: ClaimJudgement, checked: Verdict | None) -> Verdict:
    """One claim that the judge may decide. What was read letter by letter stands; a quoted opposite shakes it."""
    if verdict.decided_by == "policy" or (verdict.decided_by == "check" and verdict.status in BAD):
        return verdict
    if verdict.decided_by == "check" and verdict.status == "supported" and found.status != "contradicted":
        return verdict
    if found.status == "supported":
        return _supported(verdict, found, checked)
    if found.status == "contradicted":
        if checked is None or checked.status == "supported":
            return _in_doubt(verdict, "judge_refuted")
        return _taken(verdict, found, "contradicted", _at_most(verdict, CONTRADICTED_TO))
    if found.status == "not_found":
        return _taken(verdict, found, "not_found", _at_most(verdict, NOT_FOUND_TO))
    return _taken(verdict, found, "unclear", 0.5 if verdict.supported_probability is not None else None)


def _supported(verdict: Verdict, found: ClaimJudgement, checked: Verdict | None) -> Verdict:
    if not found.evidence or checked is None or _against(checked):
        return verdict if verdict.status in BAD else _in_doubt(verdict, "judge_refuted")
    support = verdict.supported_probability
    return _taken(verdict, found, "supported", None if support is None else max(support, SUPPORTED_FROM))


def _against(checked: Verdict) -> bool:
    """The quoted sources contradict the claim, or are far from supporting it."""
    if checked.status == "supported":
        return False
    if checked.status == "contradicted" or (checked.decided_by == "check" and checked.status in BAD):
        return True
    return checked.supported_probability is None or checked.supported_probability < FLOOR


def _at_most(verdict: Verdict, limit: float) -> float | None:
    return None if verdict.supported_probability is None else min(verdict.supported_probability, limit)


def _in_doubt(verdict: Verdict, reason: str) -> Verdict:
    """Judge and verifier say what cannot both be true: unclear, whoever is right (S13)."""
    probability = None if verdict.supported_probability is None else min(0.5, verdict.supported_probability)
    return msgspec.structs.replace(
        verdict,
        status="unclear",
        confidence=0.5,
        supported_probability=probability,
        reason=reason,
        decided_by="judge",
    )


def _taken(verdict: Verdict, found: ClaimJudgement, status: ClaimStatus, probability: float | None) -> Verdict:
    return Verdict(
        claim_id=verdict.claim_id,
        status=status,
        confidence=min(MAX_CONFIDENCE, max(0.0, found.confidence)),
        evidence=found.evidence or (verdict.evidence if status in ("not_found", "unclear") else ()),
        supported_probability=probability,
        reason=f"judge_{status}",
        decided_by="judge",
    )
