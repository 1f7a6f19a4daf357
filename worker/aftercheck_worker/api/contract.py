"""What POST /monitor/check takes and gives (R32)."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from aftercheck_schemas.vocabulary import (
    EVIDENCE_KIND_ALIASES,
    EVIDENCE_KINDS,
    Action,
    ClaimStatus,
    ClaimType,
    EvidenceKind,
    Outcome,
    Severity,
)

MAX_ITEMS: Final = 1000
KINDS: Final[dict[str, EvidenceKind]] = dict(zip(EVIDENCE_KINDS, EVIDENCE_KINDS, strict=True)) | EVIDENCE_KIND_ALIASES
Trust = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Item(_Strict):
    """A piece of evidence. `kind` may be an alias such as doc, tool_log or history."""

    text: str
    source_id: str | None = Field(None, max_length=500)
    kind: str | None = Field(None, max_length=40)
    trust: Trust = 1.0


class ToolLog(_Strict):
    """One tool call. `ok` false makes it no evidence. `at` is nanoseconds since the epoch."""

    name: str = Field("", max_length=500)
    arguments: JsonValue = None
    result: JsonValue = None
    ok: bool = True
    at: int = Field(0, ge=0, lt=2**63)
    source_id: str | None = Field(None, max_length=500)
    kind: str | None = Field(None, max_length=40)
    trust: Trust = 1.0
    text: str | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.text is None and self.result is None:
            raise ValueError("a tool log needs `result` or `text`")
        return self


class CheckRequest(_Strict):
    """What the agent was asked, what it wants to say, and what it knew."""

    agent_id: str = Field(min_length=1, max_length=200)
    input: str = ""
    output: str
    context: list[str | Item] = Field(default_factory=list[str | Item], max_length=MAX_ITEMS)
    tool_logs: list[str | ToolLog] = Field(default_factory=list[str | ToolLog], max_length=MAX_ITEMS)
    memory_refs: list[str | Item] = Field(default_factory=list[str | Item], max_length=MAX_ITEMS)
    judge: bool = False


class EvidenceReply(BaseModel):
    """`text` is the source's text between `start` and `end`."""

    source_id: str
    start: int
    end: int
    text: str
    kind: str
    trust: float
    score: float


class VerdictReply(BaseModel):
    """What the evidence says of one claim."""

    claim_id: str
    status: ClaimStatus
    confidence: float
    supported_probability: float | None
    reason: str
    decided_by: str
    evidence: list[EvidenceReply]


class ClaimReply(BaseModel):
    """`text` is `output[start:end]`."""

    id: str
    text: str
    start: int
    end: int
    type: ClaimType
    subtype: str | None
    severity: Severity
    verifiable: bool
    skip_reason: str | None


class CheckReply(BaseModel):
    """The contract's `risk`, `action` and `verdicts`, and what is needed to read them.

    `trace_id` finds the check on the page and takes feedback. `unresolved` names memory ids that nothing resolved:
    they were no evidence. `failures` are evaluators that did not answer, the judge among them when it was asked for;
    `decided_by` says whether it had the last word. Offsets count in the caller's own text.
    """

    trace_id: str
    risk: float
    action: Action
    verdicts: list[VerdictReply]
    claims: list[ClaimReply]
    outcome: Outcome
    reason: str | None
    faithfulness: float | None
    faithfulness_upper: float | None
    risk_v2: float
    flagged: bool
    decided_by: str
    origin: Literal["check"] = "check"
    evaluator: str
    evaluator_version: str
    quality: str
    unresolved: list[str]
    failures: list[str]
