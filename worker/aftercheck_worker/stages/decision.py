"""From scores and findings to one verdict per claim: the rules of the notes on verification, S7. Pure.

Contradiction is tested before entailment and counts only from a relevant window. A claim is supported when any window
supports it (the minimum of doubt over windows). Checks convict first; they can take support away, never invent it
except where the source is read letter by letter (a verbatim quote, a logged action, a table row, a signature).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from aftercheck_schemas.evaluation import Claim, DecidedBy, Evidence, Verdict
from aftercheck_schemas.vocabulary import ClaimStatus, ClaimType

NO_EVIDENCE: Final = 0.8
"""Confidence of `not_found` without any evidence (R13)."""
LITERAL: Final = frozenset({"quote", "action", "table", "code", "value"})
"""Checks whose support is literal; with `support` they decide."""
SILENT: Final = frozenset({"number_without_counterpart", "date_without_counterpart"})
"""Caps that say that the evidence states no value of the kind: what nothing speaks of is not contradicted."""


SURE: Final = 0.75
"""Strength from which a literal support decides."""


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Cuts on calibrated probabilities, 0..1 each; a part of `evaluator_version`.

    Attributes:
        support: from here supported. contradiction: from here contradicted.
        relevance: below it a window cannot contradict, and a claim without support is `not_found`.
        escalated: the cut of `support` when a check has doubts.
        margin: closer than this to the cut of `support`, from below, is `unclear`.
        by_type: own cuts of `support` for a claim type, where enough labels were there.
    """

    support: float = 0.5
    contradiction: float = 0.5
    relevance: float = 0.25
    escalated: float = 0.75
    margin: float = 0.0
    by_type: dict[ClaimType, float] = msgspec.field(default_factory=dict[ClaimType, float])


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier said of one window.

    Attributes:
        support, contradiction: calibrated probabilities, 0..1.
        relevance: 0..1, of the window for the claim.
        evidence: verbatim spans of the window that carry the claim best.
        elided: a source inside was cut off, so that silence proves nothing.
    """

    support: float
    contradiction: float
    relevance: float = 1.0
    evidence: tuple[Evidence, ...] = ()
    elided: bool = False


class Finding(Protocol):
    """A check's finding, see `stages.checks.finding`."""

    @property
    def kind(self) -> str:
        """The check."""
        ...

    @property
    def effect(self) -> str:
        """support, cap, escalate or convict."""
        ...

    @property
    def status(self) -> ClaimStatus | None:
        """Status of a cap or convict."""
        ...

    @property
    def reason(self) -> str:
        """Short code."""
        ...

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Verbatim spans."""
        ...

    @property
    def strength(self) -> float:
        """0..1."""
        ...


class Pool(Protocol):
    """What decision needs to know of the evidence pool."""

    @property
    def available(self) -> bool:
        """Any text of any origin, failed tools included."""
        ...

    @property
    def missing(self) -> bool:
        """Passages were recorded, all blank."""
        ...


def decide(
    claim: Claim,
    scores: Sequence[Score] | None,
    findings: Sequence[Finding],
    pool: Pool,
    thresholds: Thresholds = Thresholds(),  # noqa: B008 - frozen
) -> Verdict:
    """Return the verdict on one claim.

    Args:
        claim: a verifiable claim.
        scores: one per window, best first; empty when there was nothing to read; None when the verifier failed.
        findings: the checks' findings about this claim.
        pool: whether there was evidence at all.
        thresholds: the cuts.
    """
    if not pool.available:
        reason = "context_missing" if pool.missing else "no_evidence_pool"
        return _verdict(claim, "not_found", NO_EVIDENCE, reason, (), 1.0 - NO_EVIDENCE, "policy")
    support = max((score.support for score in scores or ()), default=0.0)
    literal = _first([f for f in findings if f.strength >= SURE], "support", LITERAL)
    convicted = _conviction(findings, literal)
    if convicted is not None:
        confidence = min(0.99, max(0.75, convicted.strength))
        return _verdict(
            claim,
            convicted.status or "contradicted",
            confidence,
            convicted.reason,
            convicted.evidence,
            min(support, 1 - confidence),
            "check",
            conflict=support >= thresholds.by_type.get(claim.type, thresholds.support),
        )
    if scores is None:
        return _verdict(claim, "unclear", 0.5, "verifier_failed", (), None, "verifier_fallback")
    return _scored(claim, scores, findings, literal, support, thresholds)


def _scored(
    claim: Claim,
    scores: Sequence[Score],
    findings: Sequence[Finding],
    literal: Finding | None,
    support: float,
    thresholds: Thresholds,
) -> Verdict:
    cut = thresholds.by_type.get(claim.type, thresholds.support)
    if any(finding.effect == "escalate" for finding in findings):
        scores = [_doubted(score, cut, thresholds.escalated) for score in scores]
        support = max((score.support for score in scores), default=0.0)
    against = max(
        (s for s in scores if s.relevance >= thresholds.relevance), key=lambda s: s.contradiction, default=None
    )
    contradicts = against is not None and against.contradiction >= thresholds.contradiction
    best = max(scores, key=lambda s: s.support, default=None)
    if literal is not None:
        sure = max(support, 0.9)
        return _verdict(claim, "supported", sure, literal.reason, literal.evidence, sure, "check")
    capped = _first(findings, "cap")
    if contradicts and against is not None and (capped is None or capped.reason not in SILENT):
        if support >= cut and best is not None and capped is None:
            return _verdict(claim, "unclear", 0.5, "conflicting_sources", (*best.evidence, *against.evidence), 0.5)
        return _verdict(
            claim,
            "contradicted",
            against.contradiction,
            "contradicted_by_source",
            against.evidence,
            min(support, 1 - against.contradiction),
        )
    elided = any(score.elided for score in scores)
    if capped is not None:
        return _capped(claim, capped, best, elided=elided)
    if best is not None and support >= cut:
        return _verdict(claim, "supported", support, "entailed", best.evidence, support)
    return _unsupported(claim, scores, best, support, cut, thresholds, elided=elided)


def _doubted(score: Score, cut: float, escalated: float) -> Score:
    """Move `escalated` to where `cut` is, so that the probability says the same as the status."""
    raised, support = max(cut, escalated), score.support
    if raised >= 1.0 or raised == cut:
        return score
    moved = support * cut / raised if support < raised else 1 - (1 - support) * (1 - cut) / (1 - raised)
    return msgspec.structs.replace(score, support=moved)


def _capped(claim: Claim, capped: Finding, best: Score | None, *, elided: bool) -> Verdict:
    status: ClaimStatus = capped.status or "not_found"
    evidence = capped.evidence or (best.evidence if best is not None else ())
    if status == "not_found" and elided:
        return _verdict(claim, "unclear", 0.5, "source_cut_off", evidence, 0.3, "check")
    probability = 0.3 if status == "unclear" else min(0.2, best.support if best is not None else 0.2)
    return _verdict(
        claim, status, 0.5 if status == "unclear" else 1 - probability, capped.reason, evidence, probability, "check"
    )


def _unsupported(
    claim: Claim,
    scores: Sequence[Score],
    best: Score | None,
    support: float,
    cut: float,
    thresholds: Thresholds,
    *,
    elided: bool,
) -> Verdict:
    evidence = best.evidence if best is not None else ()
    relevance = max((score.relevance for score in scores), default=0.0)
    if elided:
        return _verdict(claim, "unclear", 0.5, "source_cut_off", evidence, support)
    if support >= cut - thresholds.margin and thresholds.margin > 0:
        return _verdict(claim, "unclear", 0.5, "low_margin", evidence, support)
    reason = "no_relevant_evidence" if relevance < thresholds.relevance else "not_entailed"
    return _verdict(claim, "not_found", 1 - support, reason, evidence, min(support, cut))


def _first(findings: Sequence[Finding], effect: str, kinds: frozenset[str] | None = None) -> Finding | None:
    chosen = [f for f in findings if f.effect == effect and (kinds is None or f.kind in kinds)]
    return max(chosen, key=lambda f: (f.status == "unclear", f.strength), default=None)


def _conviction(findings: Sequence[Finding], literal: Finding | None) -> Finding | None:
    """Contradicted outweighs not_found; a literal support outweighs a conviction by likeness alone."""
    chosen = [f for f in findings if f.effect == "convict"]
    if literal is not None:
        chosen = [f for f in chosen if f.kind in LITERAL or f.kind in ("identifier", "doctrine")]
    return max(chosen, key=lambda f: (f.status == "contradicted", f.strength), default=None)


def _verdict(
    claim: Claim,
    status: ClaimStatus,
    confidence: float,
    reason: str,
    evidence: tuple[Evidence, ...],
    probability: float | None,
    by: DecidedBy = "verifier",
    *,
    conflict: bool = False,
) -> Verdict:
    return Verdict(
        claim_id=claim.id,
        status=status,
        confidence=min(1.0, max(0.0, confidence)),
        evidence=evidence,
        supported_probability=probability,
        reason=reason,
        decided_by=by,
        conflict=conflict,
    )
