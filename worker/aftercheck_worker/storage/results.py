"""Writes finished evaluations: ledger state, rows and totals in one transaction, for the rows that we moved only.

A duplicate delivery, a second worker or an older release finds the ledger row terminal and writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction
from aftercheck_schemas.evaluation import Evaluation
from aftercheck_schemas.vocabulary import State
from aftercheck_worker.storage import judged, ledger, retrieval, rows, scrub, totals
from aftercheck_worker.storage.judged import Judged
from aftercheck_worker.storage.ledger import CHECKABLE, Finish, Work
from aftercheck_worker.storage.retrieval import Retrieval
from aftercheck_worker.storage.totals import TotalKey

ONLINE: Final = "online"
"""`run_id` of the evaluations that count; replays and re-checks carry another."""


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluation is grouped by, taken from its interaction."""

    environment: str = ""
    model: str = ""
    prompt_version: str = ""
    retriever_version: str = ""
    session_id: str = ""
    turn: int = 0
    call_index: int = 1
    context_tokens: int = 0
    retrieval: Retrieval = Retrieval()

    @classmethod
    def of(cls, interaction: Interaction) -> Labels:
        """Read the labels of an interaction."""
        return cls(
            environment=interaction.environment,
            model=interaction.model,
            prompt_version=interaction.versions.prompt,
            retriever_version=interaction.versions.retriever,
            session_id=interaction.session_id,
            turn=interaction.turn,
            call_index=interaction.call_index,
            context_tokens=interaction.context_tokens,
            retrieval=retrieval.of(interaction),
        )


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with its evaluation, ready to be written. `judged` None = it was not sent to a judge."""

    work: Work
    evaluation: Evaluation
    labels: Labels = Labels()
    judged: Judged | None = None

    @property
    def state(self) -> State:
        """Terminal state that the outcome leads to."""
        outcome = self.evaluation.outcome
        return outcome if outcome in ("abstained", "not_assessable") else "scored"


def finalise(
    connection: psycopg.Connection[TupleRow],
    finished: Sequence[Finished],
    *,
    late_seconds: float = 900.0,
    expected: Iterable[State] = CHECKABLE,
    also: Mapping[str, Mapping[TotalKey, float]] | None = None,
) -> int:
    """Write what is not written yet.

    Args:
        connection: the caller commits; use `database.transaction`, so that a deadlock is retried.
        finished: up to a batch. All of one tenant or of many.
        late_seconds: an answer older than this counts as late and enters no alert series (R53).
        expected: ledger states from which these may finish.
        also: further increments by tenant, so that all totals of a transaction are locked in one order.

    Returns:
        How many this call has written; the others had been finished before.

    Raises:
        psycopg.errors.CheckViolation: a score is NaN or outside 0..1; nothing is written.
    """
    given = {item.work.evaluation_id: item for item in finished}
    if not given and not also:
        return 0
    reasons: dict[int, tuple[State, str]] = {
        number: (item.state, item.evaluation.reason or "") for number, item in given.items()
    }
    moved = ledger.finish(connection, reasons, expected) if reasons else []
    won = [_Row(given[done.evaluation_id], done, late_seconds) for done in moved]
    if won:
        _write(connection, won)
    _count(connection, won, finished, also or {})
    return len(won)


class _Row:
    """A finished answer that we may write."""

    __slots__ = ("evaluation", "judged", "key", "labels", "late", "version", "work")

    def __init__(self, item: Finished, done: Finish, late_seconds: float) -> None:
        self.work, self.evaluation, self.labels = item.work, item.evaluation, item.labels
        self.judged = item.judged
        age = (rows.nanoseconds(done.finalised_at) - item.work.answered_at) / 1e9
        self.late = item.work.answered_at > 0 and age > late_seconds
        # The day comes from the ledger, whatever the caller holds: it is the partition of all rows of the answer.
        self.version = scrub.text(item.evaluation.evaluator_version)
        self.key = (done.day, done.evaluation_id, ONLINE, self.version)


_KEY: Final = (("day", "date"), ("evaluation_id", "int8"), ("run_id", "text"), ("evaluator_version", "text"))
_EVALUATION: Final = (
    *_KEY,
    *((name, "text") for name in ("tenant", "trace_id", "span_id", "app", "environment", "model", "prompt_version")),
    *((name, "text") for name in ("retriever_version", "evaluator", "quality", "origin")),
    ("weight", "float8"),
    ("session_id", "text"),
    *((name, "int4") for name in ("turn", "call_index", "context_tokens")),
    *((name, "text") for name in ("outcome", "reason")),
    *((name, "float8") for name in ("faithfulness", "faithfulness_upper", "supported_probability")),
    ("hallucinated", "bool"),
    ("critical", "int4"),
    ("flagged", "bool"),
    *((name, "float8") for name in ("risk", "risk_v2")),
    ("action", "text"),
    *((name, "int4") for name in ("claims", "verifiable")),
    *((name, "bool") for name in ("complete", "late")),
    ("details", "jsonb"),
    ("answered_at", "timestamptz"),
)
_CLAIM: Final = (
    *_KEY,
    *(("claim_id", "text"), ("text", "text"), ("start", "int4"), ("end", "int4"), ("type", "text")),
    *(("subtype", "text"), ("severity", "text"), ("verifiable", "bool"), ("skip_reason", "text")),
    *(("citations", "jsonb"), ("premise", "text")),
)
_VERDICT: Final = (
    *_KEY,
    *(("claim_id", "text"), ("status", "text"), ("confidence", "float8"), ("supported_probability", "float8")),
    *(("reason", "text"), ("decided_by", "text")),
)
_EVIDENCE: Final = (
    *_KEY,
    *(("claim_id", "text"), ("position", "int2"), ("source_id", "text"), ("kind", "text"), ("trust", "float8")),
    *(("start", "int4"), ("end", "int4"), ("text", "text"), ("score", "float8")),
)


class Keyed(msgspec.Struct, frozen=True):
    """An evaluation and the key of its rows: day, evaluation id, run id, evaluator version."""

    key: tuple[date, int, str, str]
    evaluation: Evaluation


def _write(connection: psycopg.Connection[TupleRow], won: Sequence[_Row]) -> None:
    rows.write(connection, "evaluation", _EVALUATION, map(_evaluation, won))
    keep_claims(connection, won)


def keep_claims(connection: psycopg.Connection[TupleRow], won: Sequence[_Row | Keyed]) -> None:
    """Write claims, verdicts and evidence of evaluations whose own row was just written by this transaction."""
    rows.write(connection, "claim", _CLAIM, (values for row in won for values in _claims(row)))
    rows.write(connection, "verdict", _VERDICT, (values for row in won for values in _verdicts(row)))
    rows.write(connection, "evidence", _EVIDENCE, (values for row in won for values in _evidence(row)))


def _evaluation(row: _Row) -> tuple[object, ...]:
    found, labels, work = row.evaluation, row.labels, row.work
    return (
        *row.key,
        work.tenant,
        work.trace_id,
        work.span_id,
        work.app,
        scrub.text(labels.environment),
        scrub.text(labels.model),
        scrub.text(labels.prompt_version),
        scrub.text(labels.retriever_version),
        scrub.text(found.evaluator),
        found.quality,
        work.origin,
        work.weight,
        scrub.text(labels.session_id),
        labels.turn,
        labels.call_index,
        labels.context_tokens,
        found.outcome,
        found.reason and scrub.text(found.reason),
        found.faithfulness,
        found.faithfulness_upper,
        found.supported_probability,
        found.hallucinated,
        found.critical,
        found.flagged,
        found.risk,
        found.risk_v2,
        found.action,
        len(found.claims),
        sum(claim.verifiable for claim in found.claims),
        found.complete,
        row.late,
        _details(found, labels.retrieval, row.judged),
        rows.moment(work.answered_at),
    )


def _details(found: Evaluation, retrieved: Retrieval, routed: Judged | None) -> object:
    details: dict[str, object] = {
        "citations": found.citations,
        "failures": found.failures,
        "labels": found.labels,
        "probability_reason": found.probability_reason,
        "retrieval": retrieved.keys,
        "decided_by": found.decided_by if routed is not None else None,
        "judge": routed and routed.document,
    }
    present = {name: value for name, value in details.items() if value}
    return rows.jsonb(scrub.encode(present)) if present else None


def _claims(row: _Row | Keyed) -> Iterator[tuple[object, ...]]:
    for claim in row.evaluation.claims:
        yield (
            *row.key,
            scrub.text(claim.id),
            scrub.text(claim.text),
            claim.start,
            claim.end,
            claim.type,
            claim.subtype,
            claim.severity,
            claim.verifiable,
            claim.skip_reason,
            rows.jsonb(scrub.encode(claim.citations)) if claim.citations else None,
            scrub.text(claim.premise) if claim.premise else None,
        )


def _verdicts(row: _Row | Keyed) -> Iterator[tuple[object, ...]]:
    for verdict in row.evaluation.verdicts:
        yield (
            *row.key,
            scrub.text(verdict.claim_id),
            verdict.status,
            verdict.confidence,
            verdict.supported_probability,
            scrub.text(verdict.reason),
            verdict.decided_by,
        )


def _evidence(row: _Row | Keyed) -> Iterator[tuple[object, ...]]:
    for verdict in row.evaluation.verdicts:
        claim_id = scrub.text(verdict.claim_id)
        for position, found in enumerate(verdict.evidence):
            yield (
                *row.key,
                claim_id,
                position,
                scrub.text(found.source_id),
                found.kind,
                found.trust,
                found.start,
                found.end,
                scrub.text(found.text),
                found.score,
            )


_Sums = defaultdict[TotalKey, float]


def _count(
    connection: psycopg.Connection[TupleRow],
    won: Sequence[_Row],
    finished: Sequence[Finished],
    also: Mapping[str, Mapping[TotalKey, float]],
) -> None:
    sums: dict[str, _Sums] = defaultdict(lambda: defaultdict(float))
    for tenant, increments in also.items():
        sums[tenant].update(increments)
    for row in won:
        _add(sums[row.work.tenant], row)
    written = {row.work.evaluation_id for row in won}
    for item in finished:
        if item.work.evaluation_id not in written:
            sums[item.work.tenant][TotalKey(totals.DUPLICATES, item.work.app, origin=item.work.origin)] += 1
    for tenant in sorted(sums):
        totals.add(connection, tenant, sums[tenant])


def _add(sums: _Sums, row: _Row) -> None:
    found, labels, work = row.evaluation, row.labels, row.work
    base = (work.app, labels.environment, labels.model, labels.prompt_version, found.evaluator, work.origin)

    def count(metric: str, value: float = 1.0, key: str = "") -> None:
        sums[TotalKey(metric, *base, key)] += value

    state = "scored" if found.outcome in ("grounded", "ungrounded", "no_claims") else found.outcome
    sums[TotalKey(totals.STATES, work.app, origin=work.origin, key=state)] += 1
    if found.outcome == "not_assessable":
        count(totals.NOT_ASSESSABLE, key=found.reason or "")
    for failure in found.failures:
        count(totals.EVALUATOR_FAILURES, key=failure.reason)
    for metric, value, key in judged.finalised(found, row.judged):
        count(metric, value, key)
    measured = found.faithfulness if found.outcome in ("grounded", "ungrounded") else None
    if row.late:
        count(totals.LATE, key=found.outcome)
        if measured is not None:
            count(totals.LATE_FAITHFULNESS_SUM, work.weight * measured)
            count(totals.LATE_FAITHFULNESS_COUNT, work.weight)
        return
    count(totals.ANSWERS, work.weight, found.outcome)
    count(totals.ANSWERS_RAW, key=found.outcome)
    count(totals.ACTIONS, key=found.action)
    if labels.retrieval.result:
        count(totals.RETRIEVALS, key=labels.retrieval.result)
    if measured is not None:
        _add_faithfulness(count, measured, work.weight)
        _add_flags(count, found, work.weight)
    for metric, value, key in judged.measured(row.judged, work.weight):
        count(metric, value, key)
    types = {claim.id: claim.type for claim in found.claims}
    for verdict in found.verdicts:
        count(totals.CLAIMS, key=verdict.status)
        count(totals.CLAIMS_TYPE, key=types.get(verdict.claim_id, "fact"))


def _add_faithfulness(count: Callable[..., None], measured: float, weight: float) -> None:
    count(totals.FAITHFULNESS_SUM, weight * measured)
    count(totals.FAITHFULNESS_COUNT, weight)
    count(totals.FAITHFULNESS_SUMSQ, weight * measured * measured)
    count(totals.FAITHFULNESS_RAW_SUM, measured)
    count(totals.FAITHFULNESS_RAW_COUNT)
    count(totals.FAITHFULNESS_RAW_SUMSQ, measured * measured)


def _add_flags(count: Callable[..., None], found: Evaluation, weight: float) -> None:
    flags = (
        (found.hallucinated, totals.HALLUCINATED, totals.HALLUCINATED_RAW),
        (found.critical > 0, totals.CRITICAL, totals.CRITICAL_RAW),
        (found.flagged, totals.FLAGGED, totals.FLAGGED_RAW),
    )
    for true, weighted, raw in flags:
        if true:
            count(weighted, weight)
            count(raw)
    count(totals.CRITICAL_CLAIMS, found.critical)
