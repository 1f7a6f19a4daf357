"""`aftercheck evaluate`: rows of a JSONL file through the online pipeline, without any service.

A row is {id, query, context, response, history?, span_status?}. `context` is a string, or a list of strings and
objects {source_id, kind, trust, ok, elided, text, name, arguments}. `question` and `answer` are accepted too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec

from aftercheck_schemas import Evaluation, Interaction, Message, Passage
from aftercheck_schemas.vocabulary import EVIDENCE_KIND_ALIASES, EVIDENCE_KINDS, EvidenceKind
from aftercheck_worker import pipeline
from aftercheck_worker.evaluators import Evaluator

BATCH: Final = 32
MAX_LINE: Final = 64 * 1024 * 1024
GATES: Final[Mapping[str, str]] = {
    "faithfulness": "faithfulness",
    "faithfulness_upper": "faithfulness_upper",
    "supported_probability": "supported_probability",
}
"""Metrics that `--fail-under` knows."""

KINDS: Final[dict[str, EvidenceKind]] = dict(zip(EVIDENCE_KINDS, EVIDENCE_KINDS, strict=True)) | EVIDENCE_KIND_ALIASES

Role = Literal["system", "user", "assistant", "tool"]


class Document(msgspec.Struct, kw_only=True):
    """An item of `context`. `kind` may be an alias such as doc, tool_log or history."""

    text: str
    source_id: str | int | None = None
    kind: str = "context"
    trust: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    ok: bool = True
    elided: bool = False
    name: str = ""
    arguments: str = ""


class Turn(msgspec.Struct, kw_only=True):
    """An item of `history`; `content` is accepted for `text`."""

    role: Role
    text: str = ""
    content: str = ""


class Row(msgspec.Struct, kw_only=True):
    """One line of the input. Unknown fields are ignored."""

    id: str | int
    query: str | None = None
    question: str | None = None
    context: str | list[str | Document] | None = None
    response: str | None = None
    answer: str | None = None
    history: list[str | Turn] = []
    span_status: str | None = None


class BadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line that is no row. `line` is 1-based."""

    line: int
    why: str


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was evaluated: its id as given, and the evaluation."""

    line: int
    id: str | int
    evaluation: Evaluation


_decoder: Final = msgspec.json.Decoder(Row)


Judge = Callable[[Sequence[tuple[Interaction, Evaluation]]], list[Evaluation]]
"""Looks at a batch again; one evaluation per answer, in order."""


def evaluate(
    lines: Iterable[bytes], evaluator: Evaluator, *, batch: int = BATCH, judge: Judge | None = None
) -> Iterator[Done | BadRow]:
    """Evaluate JSONL lines in batches and yield their results in the order of the lines; blank lines are skipped.

    Args:
        lines: of the file.
        evaluator: the verifier.
        batch: rows at once.
        judge: decides what the verifier is not sure of, None without one.
    """
    waiting: list[tuple[int, Row, Interaction] | BadRow] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        waiting.append(_read(number, line))
        if len(waiting) >= batch:
            yield from _flush(waiting, evaluator, judge)
            waiting = []
    yield from _flush(waiting, evaluator, judge)


def interaction(row: Row) -> Interaction:
    """Return the interaction that a row describes.

    Raises:
        ValueError: neither response nor answer is there, two documents share an id, or a kind is unknown.
    """
    answer = row.response if row.response is not None else row.answer
    if answer is None:
        raise ValueError("the row has neither `response` nor `answer`")
    return Interaction(
        trace_id="",
        span_id="",
        app="evaluate",
        origin="golden",
        question=row.query or row.question or "",
        answer=answer,
        passages=_passages(row.context),
        history=tuple(_turn(turn, place) for place, turn in enumerate(row.history)),
        context_source="recorded",
        context_confidence=1.0,
        not_assessable="error_span" if (row.span_status or "").lower() == "error" else None,
    )


def output(done: Done, *, judged: bool = False) -> dict[str, object]:
    """Return the line to write for an evaluated row.

    `claims` holds the verified claims; `skipped` the spans that are none (greeting, question, plan, ...). Where a
    judge was asked (`judged`), the answer and its claims say who had the last word, and what failed.
    """
    found = done.evaluation
    verdicts = {verdict.claim_id: verdict for verdict in found.verdicts}
    claims: list[dict[str, object]] = []
    for claim in found.claims:
        if (verdict := verdicts.get(claim.id)) is None:
            continue
        claims.append(
            {
                "id": claim.id,
                "text": claim.text,
                "start": claim.start,
                "end": claim.end,
                "type": claim.type,
                "subtype": claim.subtype,
                "severity": claim.severity,
                "status": verdict.status,
                "confidence": verdict.confidence,
                "supported_probability": verdict.supported_probability,
                "reason": verdict.reason,
                **({"decided_by": verdict.decided_by} if judged else {}),
                "evidence": [
                    {"source_id": e.source_id, "start": e.start, "end": e.end, "text": e.text}
                    for e in verdict.evidence
                ],
            }
        )
    return {
        "id": done.id,
        "supported_probability": found.supported_probability,
        "probability_reason": found.probability_reason,
        "outcome": found.outcome,
        "reason": found.reason,
        "hallucinated": found.hallucinated,
        "flagged": found.flagged,
        "faithfulness": found.faithfulness,
        "faithfulness_upper": found.faithfulness_upper,
        "risk": found.risk,
        "risk_v2": found.risk_v2,
        "action": found.action,
        "claims": claims,
        "citations": [msgspec.structs.asdict(citation) for citation in found.citations],
        "skipped": [
            {"text": c.text, "start": c.start, "end": c.end, "reason": c.skip_reason}
            for c in found.claims
            if c.id not in verdicts
        ],
        "evaluator": found.evaluator,
        "evaluator_version": found.evaluator_version,
        "quality": found.quality,
        **(_last_word(found) if judged else {}),
    }


def _last_word(found: Evaluation) -> dict[str, object]:
    return {
        "decided_by": found.decided_by,
        "failures": [msgspec.structs.asdict(failure) for failure in found.failures],
        "labels": list(found.labels),
    }


def _read(number: int, line: bytes) -> tuple[int, Row, Interaction] | BadRow:
    if len(line) > MAX_LINE:
        return BadRow(line=number, why=f"longer than {MAX_LINE // 2**20} MiB")
    try:
        row = _decoder.decode(line)
        return number, row, interaction(row)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return BadRow(line=number, why=str(error) or type(error).__name__)


def _flush(
    waiting: Sequence[tuple[int, Row, Interaction] | BadRow], evaluator: Evaluator, judge: Judge | None
) -> Iterator[Done | BadRow]:
    good = [entry[2] for entry in waiting if not isinstance(entry, BadRow)]
    found = pipeline.evaluate_batch(good, evaluator)
    results = iter(judge(list(zip(good, found, strict=True))) if judge is not None else found)
    for entry in waiting:
        if isinstance(entry, BadRow):
            yield entry
        else:
            yield Done(line=entry[0], id=entry[1].id, evaluation=next(results))


def _passages(context: str | list[str | Document] | None) -> tuple[Passage, ...]:
    items: list[str | Document] = [context] if isinstance(context, str) else context or []
    found: list[Passage] = []
    for place, item in enumerate(items, start=1):
        document = Document(text=item) if isinstance(item, str) else item
        if not document.text.strip():
            continue
        name = str(place) if document.source_id is None else str(document.source_id)
        if any(name == passage.source_id for passage in found):
            raise ValueError(f"two documents have the source_id {name!r}")
        found.append(
            Passage(
                source_id=name,
                text=document.text,
                kind=_kind(document.kind),
                trust=document.trust,
                ok=document.ok,
                elided=document.elided,
                name=document.name,
                arguments=document.arguments,
            )
        )
    return tuple(found)


def _kind(word: str) -> EvidenceKind:
    try:
        return KINDS[word]
    except KeyError:
        raise ValueError(f"unknown evidence kind {word!r}, known are {', '.join(KINDS)}") from None


def _turn(turn: str | Turn, place: int) -> Message:
    if isinstance(turn, str):
        return Message(role="user" if place % 2 == 0 else "assistant", text=turn)
    return Message(role=turn.role, text=turn.text or turn.content)
