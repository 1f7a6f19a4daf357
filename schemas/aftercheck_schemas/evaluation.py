"""Claims, evidence, verdicts and the evaluation of one answer. Frozen values between the stages."""

from __future__ import annotations

from typing import Literal

import msgspec

from aftercheck_schemas.vocabulary import (
    Action,
    ClaimStatus,
    ClaimSubtype,
    ClaimType,
    EvidenceKind,
    NotAssessableReason,
    Outcome,
    Severity,
)

DecidedBy = Literal["verifier", "check", "judge", "verifier_fallback", "policy"]


class Claim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A span of the answer that says one thing (R9).

    Attributes:
        id: `c1`, `c2`, ... in order of appearance.
        text: exactly `answer[start:end]`.
        start, end: character offsets (code points) into the answer, end exclusive.
        verifiable: False for skipped spans (greeting, question, plan, ...); those have `skip_reason`.
        citations: markers written in the claim, as source ids or labels, e.g. `2` for "[2]".
        premise: text to put before the claim when it cannot be read alone (the question for a one-word answer).
    """

    id: str
    text: str
    start: int
    end: int
    type: ClaimType = "fact"
    subtype: ClaimSubtype | None = None
    severity: Severity = "medium"
    verifiable: bool = True
    skip_reason: str | None = None
    citations: tuple[str, ...] = ()
    premise: str = ""


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A verbatim span of a passage: `text == passage.text[start:end]` (invariant I6).

    `score` is how strongly the span supports (or contradicts) the claim, 0..1.
    """

    source_id: str
    start: int
    end: int
    text: str
    kind: EvidenceKind = "context"
    trust: float = 1.0
    score: float = 0.0


class Verdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the evidence says about one claim (R11).

    Attributes:
        confidence: 0..1, of `status`.
        supported_probability: calibrated 0..1, None for methods that have none.
        reason: a short code such as `number_mismatch`, `no_evidence_pool`, `conflicting_sources`.
        conflict: a check convicted what the verifier supports; sends the claim to a judge.
    """

    claim_id: str
    status: ClaimStatus
    confidence: float
    evidence: tuple[Evidence, ...] = ()
    supported_probability: float | None = None
    reason: str = ""
    decided_by: DecidedBy = "verifier"
    conflict: bool = False


class CitationFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A citation written in the answer and whether its source exists and entails its claim (R10, R17)."""

    claim_id: str
    label: str
    source_id: str | None = None
    exists: bool = False
    entails: bool | None = None


class EvaluatorFailure(msgspec.Struct, frozen=True, kw_only=True):
    """An evaluator that failed. A value beside the verdicts, never a score and never a state."""

    evaluator: str
    reason: str
    detail: str = ""


class ClaimJudgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the judge says of one claim over all its repeats (R24).

    Attributes:
        status: majority of the repeats, `unclear` on a tie; None when no repeat gave a valid verdict.
        confidence: mean confidence of the repeats that agree with `status`, 0..1.
        statuses: one per valid repeat, in order.
        evidence: quotes that stand verbatim in their source, from the agreeing repeats.
    """

    claim_id: str
    status: ClaimStatus | None
    confidence: float = 0.0
    statuses: tuple[ClaimStatus, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    rationale: str = ""


class Judgement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One judge's work on one answer (R21, R23).

    Attributes:
        faithfulness: per complete repeat, supported / claims asked, 0..1; empty when none was complete.
        context_relevance, answer_relevance: 0..1 or None when not measured.
        precision_at_k: of the passages in rank order.
        disagreement: share of (claim, repeat) pairs that differ from the claim's majority, 0..1.
        void_quotes: quotes that stand in no source.
        calls, prompt_tokens, completion_tokens: what it cost.
    """

    model: str
    claims: tuple[ClaimJudgement, ...] = ()
    faithfulness: tuple[float, ...] = ()
    context_relevance: float | None = None
    answer_relevance: float | None = None
    precision_at_k: tuple[float, ...] = ()
    disagreement: float = 0.0
    void_quotes: int = 0
    repeats: int = 1
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    labels: tuple[str, ...] = ()
    failures: tuple[EvaluatorFailure, ...] = ()


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything decided about one answer.

    All ratios are 0..1 or None when nothing was measured; never NaN.

    Attributes:
        faithfulness: supported / verifiable, the lower bound; None without verifiable claims.
        faithfulness_upper: (supported + unclear) / verifiable.
        supported_probability: calibrated probability that the whole answer is supported; None for
            no_claims, abstained and not_assessable (`probability_reason` says which).
        hallucinated: at least one verifiable claim contradicted or not_found.
        critical: hallucinated claims of high severity or of a type that requires a source.
        flagged: hallucinated, or conflicting sources, a misattributed citation, or a self-contradiction.
        decided_by: who had the last word: `judge` when it decided a claim, `verifier_fallback` when it should have.
        risk, action: contract v1 (R12). risk_v2: max(burden, critical).
        evaluator: bounded name. evaluator_version: sha256 hex over all that can change a verdict.
        quality: `smoke` for the lexical baseline (kept out of alerts), `standard` otherwise.
    """

    trace_id: str
    span_id: str
    outcome: Outcome
    reason: NotAssessableReason | str | None = None
    claims: tuple[Claim, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    citations: tuple[CitationFinding, ...] = ()
    failures: tuple[EvaluatorFailure, ...] = ()
    faithfulness: float | None = None
    faithfulness_upper: float | None = None
    supported_probability: float | None = None
    probability_reason: str | None = None
    hallucinated: bool = False
    critical: int = 0
    flagged: bool = False
    risk: float = 0.0
    risk_v2: float = 0.0
    action: Action = "allow"
    labels: tuple[str, ...] = ()
    evaluator: str
    evaluator_version: str
    quality: Literal["smoke", "standard"] = "standard"
    complete: bool = True
    decided_by: DecidedBy = "verifier"
