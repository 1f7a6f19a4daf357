"""From an evaluation to the reply of a check, in the caller's own words and offsets."""

from __future__ import annotations

from aftercheck_schemas import Claim, Evaluation, Evidence
from aftercheck_worker.api.contract import CheckReply, ClaimReply, EvidenceReply, VerdictReply
from aftercheck_worker.api.question import Question


def reply(question: Question, found: Evaluation) -> CheckReply:
    """Build the reply; texts are those that the caller sent."""
    return CheckReply(
        trace_id=found.trace_id,
        risk=found.risk,
        action=found.action,
        verdicts=[
            VerdictReply(
                claim_id=one.claim_id,
                status=one.status,
                confidence=one.confidence,
                supported_probability=one.supported_probability,
                reason=one.reason,
                decided_by=one.decided_by,
                evidence=[_evidence(question, piece) for piece in one.evidence],
            )
            for one in found.verdicts
        ],
        claims=[_claim(question, one) for one in found.claims],
        outcome=found.outcome,
        reason=found.reason,
        faithfulness=found.faithfulness,
        faithfulness_upper=found.faithfulness_upper,
        risk_v2=found.risk_v2,
        flagged=found.flagged,
        decided_by=found.decided_by,
        evaluator=found.evaluator,
        evaluator_version=found.evaluator_version,
        quality=found.quality,
        unresolved=question.unresolved,
        failures=list(dict.fromkeys(failure.reason for failure in found.failures)),
    )


def _evidence(question: Question, piece: Evidence) -> EvidenceReply:
    start, end, text = piece.start, piece.end, piece.text
    original = question.sources.get(piece.source_id)
    if original is not None:
        start, end = original.span(start, end)
        text = original.raw[start:end]
    return EvidenceReply(
        source_id=piece.source_id,
        start=start,
        end=end,
        text=text,
        kind=piece.kind,
        trust=piece.trust,
        score=piece.score,
    )


def _claim(question: Question, claim: Claim) -> ClaimReply:
    start, end = question.answer.span(claim.start, claim.end)
    return ClaimReply(
        id=claim.id,
        text=question.answer.raw[start:end] if question.answer.changed else claim.text,
        start=start,
        end=end,
        type=claim.type,
        subtype=claim.subtype,
        severity=claim.severity,
        verifiable=claim.verifiable,
        skip_reason=claim.skip_reason,
    )
