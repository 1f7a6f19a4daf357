"""POST /monitor/check: the engine in the loop (R32). Nothing is stored; the origin of the evaluation is `check`."""

from __future__ import annotations

import json
import time
from typing import Annotated, Final, Literal, Self

import msgspec
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from aftercheck_schemas import Evaluation, Interaction, Passage
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
from aftercheck_worker.api.access import Checks
from aftercheck_worker.api.problem import Problem
from aftercheck_worker.api.state import state_of
from aftercheck_worker.storage import scrub

router: Final = APIRouter()
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

    `unresolved` names memory ids that nothing resolved: they were no evidence. `failures` are evaluators that did
    not answer, the judge among them when it was asked for.
    """

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
    origin: Literal["check"] = "check"
    evaluator: str
    evaluator_version: str
    quality: str
    unresolved: list[str]
    failures: list[str]


@router.post("/monitor/check", tags=["check"])
async def check(request: Request, body: CheckRequest, token: Checks) -> CheckReply:
    """Check an answer against its evidence before it leaves."""
    _ = token
    interaction, unresolved = read(body)
    found = await state_of(request).checker.check(interaction)
    failures = [failure.reason for failure in found.failures]
    if body.judge:
        failures.append("judge_not_available_in_the_loop")
    return _reply(found, unresolved, failures)


def read(body: CheckRequest) -> tuple[Interaction, list[str]]:
    """Return the interaction of a request, and the memory ids that nothing resolves.

    Raises:
        Problem: 422 for an unknown kind or two pieces of evidence of one source id.
    """
    passages = [_item(item, "context", str(place)) for place, item in enumerate(body.context, start=1)]
    passages += [_tool(log, f"tool:{place}") for place, log in enumerate(body.tool_logs, start=1)]
    unresolved: list[str] = []
    for place, ref in enumerate(body.memory_refs, start=1):
        if isinstance(ref, str):
            unresolved.append(scrub.text(ref))
        else:
            passages.append(_item(ref, "memory", f"memory:{place}"))
    kept = tuple(passage for passage in passages if passage.text.strip())
    if len({passage.source_id for passage in kept}) != len(kept):
        raise Problem(422, "invalid", "two pieces of evidence have one source_id; make them unique or leave them out")
    interaction = Interaction(
        trace_id="0" * 32,
        span_id="0" * 16,
        app=scrub.text(body.agent_id),
        origin="check",
        question=scrub.text(body.input),
        answer=scrub.text(body.output),
        passages=kept,
        context_source="recorded",
        context_confidence=1.0,
        answered_at=time.time_ns(),
    )
    return interaction, unresolved


def _item(item: str | Item, kind: EvidenceKind, name: str) -> Passage:
    if isinstance(item, str):
        return Passage(source_id=name, text=scrub.text(item), kind=kind)
    return Passage(
        source_id=scrub.text(item.source_id or name),
        text=scrub.text(item.text),
        kind=_kind(item.kind, kind),
        trust=item.trust,
    )


def _tool(log: str | ToolLog, name: str) -> Passage:
    if isinstance(log, str):
        return Passage(source_id=name, text=scrub.text(log), kind="tool_result")
    return Passage(
        source_id=scrub.text(log.source_id or name),
        text=_text(log.result if log.text is None else log.text),
        kind=_kind(log.kind, "tool_result"),
        trust=log.trust,
        ok=log.ok,
        name=scrub.text(log.name),
        arguments=_text(log.arguments),
        at=log.at,
    )


def _text(value: JsonValue) -> str:
    if value is None:
        return ""
    return scrub.text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _kind(word: str | None, default: EvidenceKind) -> EvidenceKind:
    if word is None:
        return default
    found = KINDS.get(word)
    if found is None:
        raise Problem(422, "invalid", f"unknown evidence kind; known are {', '.join(KINDS)}")
    return found


def _reply(found: Evaluation, unresolved: list[str], failures: list[str]) -> CheckReply:
    return CheckReply(
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
                evidence=[EvidenceReply(**msgspec.structs.asdict(piece)) for piece in one.evidence],
            )
            for one in found.verdicts
        ],
        claims=[
            ClaimReply(
                **{
                    name: getattr(one, name) for name in ("id", "text", "start", "end", "type", "subtype", "severity")
                },
                verifiable=one.verifiable,
                skip_reason=one.skip_reason,
            )
            for one in found.claims
        ],
        outcome=found.outcome,
        reason=found.reason,
        faithfulness=found.faithfulness,
        faithfulness_upper=found.faithfulness_upper,
        risk_v2=found.risk_v2,
        flagged=found.flagged,
        evaluator=found.evaluator,
        evaluator_version=found.evaluator_version,
        quality=found.quality,
        unresolved=unresolved,
        failures=failures,
    )
