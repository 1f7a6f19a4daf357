"""Scoring: verdicts of one answer in, its evaluation out (requirements.md "One vocabulary", R12, R15, R17).

Nothing unmeasured is ever a number: ratios without a denominator are None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from aftercheck_schemas import CitationFinding, Claim, Evaluation, EvaluatorFailure, Interaction, Verdict
from aftercheck_schemas.vocabulary import Action, ClaimStatus, NotAssessableReason, Outcome, Severity

BAD: Final[frozenset[ClaimStatus]] = frozenset({"contradicted", "not_found"})
SOURCE_REQUIRED: Final = frozenset({"number", "quote", "action_done", "system_state"})
"""Types and subtypes that need a source, telemetry or an action log (R15); unsupported ones are critical."""
SELF_CONTRADICTION: Final = "self_contradiction"
"""Label of an answer that contradicts itself or the dialogue; the fatigue statistics read it (R30)."""

WEIGHTS: Final[Mapping[ClaimStatus, float]] = {
    "contradicted": 0.45,
    "not_found": 0.25,
    "unclear": 0.15,
    "supported": 0.0,
}
"""R12, exact."""
HARM: Final[Mapping[ClaimStatus, float]] = {"contradicted": 1.0, "not_found": 0.55, "unclear": 0.33, "supported": 0.0}
"""The ratios of WEIGHTS (notes on verification, S9)."""
SEVERITY: Final[Mapping[Severity, float]] = {"low": 0.3, "medium": 0.6, "high": 1.0}
FLOORS: Final[Mapping[str, float]] = {"quote": 0.70, "action_done": 0.70, "system_state": 0.35, "number": 0.35}
"""R15: a quote without a source and an action without a log are high risk."""


class RiskProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Weights and thresholds of both risk formulas; part of `evaluator_version`. The defaults are R12's.

    Attributes:
        weights: v1's weight per status, 0..1.
        warn, block: thresholds of v1, inclusive.
        harm: v2's harm per status, 0..1 (the ratios of `weights`).
        severity: v2's weight of a claim by severity.
        floors: v2's floor for a bad claim by type or subtype (R15).
        burden_warn, burden_block, critical_warn, critical_block: thresholds of v2's two parts, inclusive.
    """

    name: str = "v1"
    weights: dict[ClaimStatus, float] = msgspec.field(default_factory=lambda: dict(WEIGHTS))
    warn: float = 0.35
    block: float = 0.70
    harm: dict[ClaimStatus, float] = msgspec.field(default_factory=lambda: dict(HARM))
    severity: dict[Severity, float] = msgspec.field(default_factory=lambda: dict(SEVERITY))
    floors: dict[str, float] = msgspec.field(default_factory=lambda: dict(FLOORS))
    burden_warn: float = 0.12
    burden_block: float = 0.30
    critical_warn: float = 0.35
    critical_block: float = 0.70


REFERENCE: Final = RiskProfile()
"""R12's profile, contract `v1`."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What turns verdicts into an action: the profile and which formula drives `action`."""

    profile: RiskProfile = RiskProfile()
    action_from: Literal["v1", "v2"] = "v1"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The evaluator's name, version (sha256 hex) and quality, as stored with every evaluation."""

    name: str
    version: str
    quality: Literal["smoke", "standard"]


class RiskV2(msgspec.Struct, frozen=True, kw_only=True):
    """The two parts of `risk_v2 = max(burden, critical)`, 0..1 each. `burden` does not grow with length."""

    burden: float
    critical: float

    @property
    def value(self) -> float:
        """The larger of both."""
        return max(self.burden, self.critical)


class ClaimRates(msgspec.Struct, frozen=True, kw_only=True):
    """R17's six numbers over any set of claims, never one number alone; ratios are 0..1 or None.

    Attributes:
        coverage: verifiable claims with a decided verdict / verifiable claims.
        precision: supported / decided.
        citation_entailment: claims whose cited source entails them / claims with a citation.
        unsupported_rate: (contradicted + not_found) / verifiable.
        critical_unsupported: their number with high severity or of a type that requires a source.
        contradiction_rate: contradicted / verifiable.
    """

    coverage: float | None
    precision: float | None
    citation_entailment: float | None
    unsupported_rate: float | None
    critical_unsupported: int
    contradiction_rate: float | None


def risk_v1(verdicts: Sequence[Verdict], profile: RiskProfile = REFERENCE) -> float:
    """Return R12's risk: per verdict its weight times its confidence, summed and capped at 1."""
    return min(1.0, round(sum(profile.weights[v.status] * v.confidence for v in verdicts), 12))


def risk_v2(claims: Mapping[str, Claim], verdicts: Sequence[Verdict], profile: RiskProfile = REFERENCE) -> RiskV2:
    """Return burden and critical (notes on verification, S9).

    With h = confidence x harm: burden = (sum s h + 2 x 0.05) / (sum s + 2), s = severity weight; critical = the
    largest h of a high-severity claim, raised to the floor of a bad claim whose type requires a source (R15).
    """
    if not verdicts:
        return RiskV2(burden=0.0, critical=0.0)
    harm, weight, critical = 2 * 0.05, 2.0, 0.0
    for verdict in verdicts:
        claim = claims[verdict.claim_id]
        h = verdict.confidence * profile.harm[verdict.status]
        harm += profile.severity[claim.severity] * h
        weight += profile.severity[claim.severity]
        if claim.severity == "high":
            critical = max(critical, h)
        if verdict.status in BAD:
            critical = max(
                critical, profile.floors.get(claim.type, 0.0), profile.floors.get(claim.subtype or "", 0.0)
            )
    return RiskV2(burden=min(1.0, harm / weight), critical=min(1.0, critical))


def action(v1: float, v2: RiskV2, policy: Policy, *, evidence: bool) -> Action:
    """Return the action by the formula that `policy` names; without usable evidence at most `warn` (R15)."""
    profile = policy.profile
    if policy.action_from == "v1":
        block, warn = v1 >= profile.block, v1 >= profile.warn
    else:
        block = v2.burden >= profile.burden_block or v2.critical >= profile.critical_block
        warn = v2.burden >= profile.burden_warn or v2.critical >= profile.critical_warn
    if block:
        return "block" if evidence else "warn"
    return "warn" if warn else "allow"


def rates(
    claims: Sequence[Claim], verdicts: Sequence[Verdict], citations: Sequence[CitationFinding] = ()
) -> ClaimRates:
    """Return R17's six numbers over `claims`; claim ids must be unique in the set."""
    known = {claim.id: claim for claim in claims}
    bad = [v for v in verdicts if v.status in BAD]
    decided = sum(v.status != "unclear" for v in verdicts)
    cited = {finding.claim_id for finding in citations}
    entailed = {finding.claim_id for finding in citations if finding.entails}
    return ClaimRates(
        coverage=_ratio(decided, len(verdicts)),
        precision=_ratio(sum(v.status == "supported" for v in verdicts), decided),
        citation_entailment=_ratio(len(entailed), len(cited)),
        unsupported_rate=_ratio(len(bad), len(verdicts)),
        critical_unsupported=sum(is_critical(known[v.claim_id]) for v in bad),
        contradiction_rate=_ratio(sum(v.status == "contradicted" for v in verdicts), len(verdicts)),
    )


def is_critical(claim: Claim) -> bool:
    """Return True for a claim of high severity or of a type that requires a source."""
    return claim.severity == "high" or claim.type in SOURCE_REQUIRED or claim.subtype in SOURCE_REQUIRED


def evaluation(
    interaction: Interaction,
    claims: tuple[Claim, ...],
    verdicts: tuple[Verdict, ...],
    *,
    identity: Identity,
    policy: Policy,
    abstained: bool,
    evidence: bool,
    citations: tuple[CitationFinding, ...] = (),
    self_contradiction: bool = False,
    failures: tuple[EvaluatorFailure, ...] = (),
    probability: float | None = None,
) -> Evaluation:
    """Return the evaluation of one assessable answer.

    Args:
        interaction: the answer and what the model saw.
        claims: every span of the answer, verifiable or not.
        verdicts: one per verifiable claim.
        identity: the evaluator.
        policy: risk profile and the formula behind `action`.
        abstained: the answer says that evidence is lacking, asks back or hands over; it wins over the verdicts.
        evidence: any usable evidence of any origin was available.
        citations: findings about citations written in the answer.
        self_contradiction: the answer contradicts itself.
        failures: evaluators that failed beside the verdicts.
        probability: that the whole answer is supported, 0..1; None when nothing was measured.
    """
    known = {claim.id: claim for claim in claims}
    outcome = _outcome(verdicts, abstained=abstained)
    scored = outcome in ("grounded", "ungrounded")
    bad = [v for v in verdicts if v.status in BAD]
    hallucinated = scored and bool(bad)
    v1, v2 = risk_v1(verdicts, policy.profile), risk_v2(known, verdicts, policy.profile)
    supported = sum(v.status == "supported" for v in verdicts)
    unclear = sum(v.status == "unclear" for v in verdicts)
    return Evaluation(
        trace_id=interaction.trace_id,
        span_id=interaction.span_id,
        outcome=outcome,
        claims=claims,
        verdicts=verdicts,
        citations=citations,
        failures=failures,
        faithfulness=_ratio(supported, len(verdicts)) if scored else None,
        faithfulness_upper=_ratio(supported + unclear, len(verdicts)) if scored else None,
        supported_probability=probability if scored else None,
        probability_reason=_probability_reason(outcome, identity),
        hallucinated=hallucinated,
        critical=sum(is_critical(known[v.claim_id]) for v in bad) if scored else 0,
        flagged=hallucinated or _flagged(verdicts, citations) or self_contradiction,
        risk=v1,
        risk_v2=v2.value,
        action=action(v1, v2, policy, evidence=evidence),
        labels=(SELF_CONTRADICTION,) if self_contradiction else (),
        evaluator=identity.name,
        evaluator_version=identity.version,
        quality=identity.quality,
        complete=interaction.complete and not interaction.truncated,
    )


def not_assessable(interaction: Interaction, reason: NotAssessableReason, identity: Identity) -> Evaluation:
    """Return the evaluation of an answer that nobody can judge; it carries the reason and no score."""
    return Evaluation(
        trace_id=interaction.trace_id,
        span_id=interaction.span_id,
        outcome="not_assessable",
        reason=reason,
        probability_reason="not_assessable",
        evaluator=identity.name,
        evaluator_version=identity.version,
        quality=identity.quality,
        complete=interaction.complete and not interaction.truncated,
    )


def _outcome(verdicts: Sequence[Verdict], *, abstained: bool) -> Outcome:
    if abstained:
        return "abstained"
    if not verdicts:
        return "no_claims"
    return "grounded" if all(v.status == "supported" for v in verdicts) else "ungrounded"


def _flagged(verdicts: Sequence[Verdict], citations: Sequence[CitationFinding]) -> bool:
    """Flags that do not need a hallucinated claim; an abstention is not flagged for what it could not find."""
    if any(v.status == "contradicted" or v.reason == "conflicting_sources" for v in verdicts):
        return True
    return any(not finding.exists or finding.entails is False for finding in citations)


def _probability_reason(outcome: Outcome, identity: Identity) -> str | None:
    if outcome in ("abstained", "no_claims"):
        return outcome
    return "uncalibrated" if identity.quality == "smoke" else None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
