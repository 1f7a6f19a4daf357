"""The one vocabulary of claims, verdicts, outcomes and states (requirements.md, "One vocabulary everywhere").

Every word that is stored, exported, shown or compared stands here once. The `Literal` aliases are the types;
the tuples beside them are the same words for loops, CHECK constraints and label allow-lists.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

ClaimStatus = Literal["supported", "contradicted", "not_found", "unclear"]
"""Verdict on one claim (R11)."""

ClaimType = Literal["fact", "number", "quote", "causal", "code", "plan"]
"""Closed list of R9."""

ClaimSubtype = Literal["action_done", "system_state", "date", "entity", "attribution"]

Severity = Literal["low", "medium", "high"]

Outcome = Literal["grounded", "ungrounded", "abstained", "no_claims", "not_assessable"]
"""Exactly one per evaluated answer."""

Action = Literal["allow", "warn", "block"]

Origin = Literal["production", "forced", "check", "replay", "golden"]
"""Where an evaluation came from (R53). Only production enters gauges, rates and alerts."""

EvidenceKind = Literal[
    "context",
    "tool_result",
    "knowledge_base",
    "memory",
    "telemetry",
    "action_log",
    "user_input",
    "prior_assistant",
]

State = Literal[
    "pending",
    "checking",
    "judging",
    "scored",
    "abstained",
    "not_assessable",
    "failed",
    "dead_letter",
    "expired",
    "erased",
]
"""State of one answer span in the ledger. The first three are in flight, the others terminal."""

Environment = str

CLAIM_STATUSES: Final[tuple[ClaimStatus, ...]] = get_args(ClaimStatus)
CLAIM_TYPES: Final[tuple[ClaimType, ...]] = get_args(ClaimType)
OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
ORIGINS: Final[tuple[Origin, ...]] = get_args(Origin)
EVIDENCE_KINDS: Final[tuple[EvidenceKind, ...]] = get_args(EvidenceKind)
STATES: Final[tuple[State, ...]] = get_args(State)
IN_FLIGHT_STATES: Final[tuple[State, ...]] = ("pending", "checking", "judging")
TERMINAL_STATES: Final[tuple[State, ...]] = tuple(s for s in STATES if s not in IN_FLIGHT_STATES)

EVIDENCE_KIND_ALIASES: Final[dict[str, EvidenceKind]] = {
    "doc": "context",
    "document": "context",
    "tool_log": "tool_result",
    "history": "prior_assistant",
    "kb": "knowledge_base",
}
"""Names that users and case files write for the kinds above."""

NotAssessableReason = Literal[
    "no_answer_text",
    "no_content",
    "input_missing",
    "no_evidence_expected",
    "answer_truncated",
    "abandoned_stream",
    "error_span",
    "invalid_json",
    "tool_calls_only",
    "not_an_answer",
]
"""Why an answer span has no verdict although it was captured.

`no_content`: content capture is off. `input_missing`: the answer was captured, its prompt was not.
`no_evidence_expected`: plain chat; no retrieval, tool or context block belongs to the span.
`not_an_answer`: embeddings, re-ranking and other model calls that answer nobody.
"""

FailedReason = Literal["too_large", "verifier_failed", "rate_limited", "deadline", "payload_missing"]

DeadLetterReason = Literal[
    "too_large",
    "too_deep",
    "invalid_json",
    "invalid_schema",
    "invalid_compression",
    "version_newer",
    "version_unknown",
    "header_invalid",
    "poison",
    "crash_loop",
]
"""Why a stream entry or an answer ended in the dead_letter table."""

DropReason = Literal[
    "buffer_full",
    "payload_too_large",
    "redis_unavailable",
    "redis_full",
    "serialization",
    "redaction_failed",
    "shutdown",
    "fork",
    "before_send",
    "internal_error",
]
"""Closed list of reasons for which the producer drops a trace (delivery contract P4)."""

DROP_REASONS: Final[tuple[DropReason, ...]] = get_args(DropReason)
NOT_ASSESSABLE_REASONS: Final[tuple[NotAssessableReason, ...]] = get_args(NotAssessableReason)
DEAD_LETTER_REASONS: Final[tuple[DeadLetterReason, ...]] = get_args(DeadLetterReason)
