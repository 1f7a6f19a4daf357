"""Everything known of one trace, and a sentence for every answer that has no verdict (R5, `aftercheck explain`)."""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow, dict_row

from aftercheck_worker.storage import dead_letters
from aftercheck_worker.storage.dead_letters import DeadLetter


class ClaimStory(msgspec.Struct, frozen=True, kw_only=True):
    """A claim with its verdict and evidence; `status` is None for a span that was skipped, see `skip_reason`."""

    claim_id: str
    text: str
    start: int
    end: int
    type: str
    subtype: str | None
    severity: str
    verifiable: bool
    skip_reason: str | None
    status: str | None
    confidence: float | None
    supported_probability: float | None
    reason: str | None
    decided_by: str | None
    evidence: list[EvidenceStory]


class EvidenceStory(msgspec.Struct, frozen=True, kw_only=True):
    """A verbatim span of a passage."""

    source_id: str
    kind: str
    trust: float
    start: int
    end: int
    text: str
    score: float


class EvaluationStory(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation of an answer; `run_id` is `online` for the one that counts."""

    run_id: str
    evaluator: str
    evaluator_version: str
    quality: str
    outcome: str
    reason: str | None
    faithfulness: float | None
    faithfulness_upper: float | None
    supported_probability: float | None
    hallucinated: bool
    critical: int
    flagged: bool
    risk: float
    risk_v2: float
    action: str
    complete: bool
    late: bool
    environment: str
    model: str
    prompt_version: str
    details: object
    finalised_at: datetime
    claims: list[ClaimStory]
    judgements: list[object]


class AnswerStory(msgspec.Struct, frozen=True, kw_only=True):
    """A ledger row with what hangs on it. `interaction` is None after retention; `why` is "" beside a verdict."""

    evaluation_id: int
    span_id: str
    app: str
    state: str
    reason: str | None
    origin: str
    weight: float
    rate_version: int
    attempts: int
    solo: bool
    created_at: datetime
    updated_at: datetime
    finalised_at: datetime | None
    answered_at: datetime | None
    why: str
    interaction: object
    evaluations: list[EvaluationStory]


class FeedbackStory(msgspec.Struct, frozen=True, kw_only=True):
    """What a user said; -1 is a thumb down."""

    span_id: str
    kind: str
    value: float
    comment: str | None
    created_at: datetime


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known. `why` says in a sentence why the trace has no answers, "" when it has some."""

    trace_id: str
    answers: list[AnswerStory]
    feedback: list[FeedbackStory]
    dead_letters: list[DeadLetter]
    erased_at: datetime | None
    why: str


def explain(connection: psycopg.Connection[TupleRow], tenant: str, trace_id: str) -> Story:
    """Collect what is known of a trace; an unknown one gives an empty story with its `why`."""
    key = {"tenant": tenant, "trace_id": trace_id}
    letters = dead_letters.of_trace(connection, tenant, trace_id)
    gone = connection.execute(
        "SELECT created_at FROM tombstone WHERE tenant = %(tenant)s AND trace_id = %(trace_id)s", key
    ).fetchone()
    answers = [_answer(connection, row) for row in _dicts(connection, _LEDGER, key)]
    erased_at = None if gone is None else gone[0]
    return Story(
        trace_id=trace_id,
        answers=answers,
        feedback=_structs(_dicts(connection, _FEEDBACK, key), FeedbackStory),
        dead_letters=letters,
        erased_at=erased_at,
        why="" if answers else _why_nothing(letters, erased_at),
    )


_LEDGER: Final = """
SELECT evaluation_id, span_id, app, state, reason, origin, weight, rate_version, attempts, solo, created_at,
       updated_at, finalised_at, answered_at, day, not_before
FROM ledger WHERE tenant = %(tenant)s AND trace_id = %(trace_id)s ORDER BY evaluation_id
"""
_FEEDBACK: Final = """
SELECT span_id, kind, value, comment, created_at FROM feedback
WHERE tenant = %(tenant)s AND trace_id = %(trace_id)s ORDER BY created_at
"""
_BODY: Final = "SELECT body FROM interaction WHERE day = %(day)s AND evaluation_id = %(evaluation_id)s"
_EVALUATIONS: Final = """
SELECT run_id, evaluator, evaluator_version, quality, outcome, reason, faithfulness, faithfulness_upper,
       supported_probability, hallucinated, critical, flagged, risk, risk_v2, action, complete, late, environment,
       model, prompt_version, details, finalised_at
FROM evaluation WHERE day = %(day)s AND evaluation_id = %(evaluation_id)s
ORDER BY run_id = 'online' DESC, finalised_at
"""
_CLAIMS: Final = """
SELECT c.run_id, c.evaluator_version, claim_id, c.text, c.start, c."end", c.type, c.subtype, c.severity, c.verifiable,
       c.skip_reason, v.status, v.confidence, v.supported_probability, v.reason, v.decided_by
FROM claim AS c LEFT JOIN verdict AS v USING (day, evaluation_id, run_id, evaluator_version, claim_id)
WHERE day = %(day)s AND evaluation_id = %(evaluation_id)s ORDER BY c.start, claim_id
"""
_EVIDENCE: Final = """
SELECT run_id, evaluator_version, claim_id, source_id, kind, trust, start, "end", text, score
FROM evidence WHERE day = %(day)s AND evaluation_id = %(evaluation_id)s ORDER BY claim_id, position
"""
_JUDGEMENTS: Final = """
SELECT run_id, evaluator_version, criterion, repeat, score, body, late, created_at
FROM judgement WHERE day = %(day)s AND evaluation_id = %(evaluation_id)s ORDER BY criterion, repeat
"""

_Dict = dict[str, object]
_S = TypeVar("_S", bound=msgspec.Struct)


def _dicts(connection: psycopg.Connection[TupleRow], statement: str, key: _Dict | dict[str, str]) -> list[_Dict]:
    with connection.cursor(row_factory=dict_row) as cursor:
        found: list[_Dict] = list(cursor.execute(statement.encode(), key).fetchall())
    return found


def _structs(found: list[_Dict], kind: type[_S]) -> list[_S]:
    return [msgspec.convert(row, kind) for row in found]


def _answer(connection: psycopg.Connection[TupleRow], row: _Dict) -> AnswerStory:
    body = _dicts(connection, _BODY, row)
    evaluations = _evaluations(connection, row)
    return msgspec.convert(
        {
            **row,
            "interaction": body[0]["body"] if body else None,
            "evaluations": evaluations,
            "why": "" if evaluations else _why(row),
        },
        AnswerStory,
    )


def _evaluations(connection: psycopg.Connection[TupleRow], row: _Dict) -> list[_Dict]:
    evidence = _dicts(connection, _EVIDENCE, row)
    judgements = _dicts(connection, _JUDGEMENTS, row)
    claims = _dicts(connection, _CLAIMS, row)
    for claim in claims:
        claim["evidence"] = [one for one in evidence if _same(one, claim) and one["claim_id"] == claim["claim_id"]]
    evaluations = _dicts(connection, _EVALUATIONS, row)
    for found in evaluations:
        found["claims"] = [claim for claim in claims if _same(claim, found)]
        found["judgements"] = [one for one in judgements if _same(one, found)]
    return evaluations


def _same(one: _Dict, other: _Dict) -> bool:
    return all(one[name] == other[name] for name in ("run_id", "evaluator_version"))


_REASONS: Final = {
    "no_answer_text": "the span holds no answer text",
    "no_content": "content capture is off in the app",
    "input_missing": "the answer was captured, its prompt was not",
    "no_evidence_expected": "plain chat: no retrieval, tool or context block belongs to the span",
    "answer_truncated": "the answer was cut before it was stored",
    "abandoned_stream": "the answer was a stream that the app did not read to its end",
    "error_span": "the model call failed",
    "invalid_json": "the recorded messages are not valid JSON",
    "tool_calls_only": "the answer holds tool calls and no text",
    "not_an_answer": "the model call answers nobody (embedding, re-ranking)",
    "too_large": "it is too large to be checked within the limits",
    "payload_missing": "its text was removed before the check",
    "crash_loop": "the worker died on it again and again",
}


def _why(row: _Dict) -> str:
    reason = str(row["reason"] or "")
    because = _REASONS.get(reason, reason) or "no reason was recorded"
    sentences = {
        "pending": "It waits for a worker."
        if row["not_before"] is None
        else f"It was put off until {row['not_before']}.",
        "checking": f"A worker is checking it (attempt {row['attempts']}), since {row['updated_at']}.",
        "judging": "The judge has it; the verifier's verdict is shown when the judge has answered or its time is up.",
        "not_assessable": f"It cannot be judged: {because}.",
        "failed": f"The check failed: {because}.",
        "dead_letter": f"The check was given up: {because}. `aftercheck dlq` can retry it.",
        "expired": "It waited too long for a worker and was let go.",
        "erased": "It was erased on request.",
    }
    return sentences.get(str(row["state"]), "Its evaluation has passed the retention time; the counts remain.")


def _why_nothing(letters: list[DeadLetter], erased_at: datetime | None) -> str:
    if erased_at is not None:
        return f"The trace was erased on request at {erased_at}."
    if letters:
        return f"Its stream entry could not be read: {letters[-1].reason}. `aftercheck dlq` shows it."
    return (
        "Nothing is known of this trace id here: it was not sampled, has not arrived yet, was dropped by the app's "
        "buffer, or belongs to another tenant."
    )
