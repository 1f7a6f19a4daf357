"""The ledger: one row per answer span, and the only place that decides who may write a result.

Every change of state names the states it may come from and reports which rows it changed; whoever writes results
or totals does so for those rows only. Rows are locked in the order of their ids.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Final, Literal

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas.vocabulary import DeadLetterReason, Origin, State
from aftercheck_worker.storage import dead_letters, rows, scrub, totals
from aftercheck_worker.storage.totals import TotalKey

CHECKABLE: Final[tuple[State, ...]] = ("pending", "checking")
"""States from which a verifier's result may finish an answer: the first of two workers wins."""


class NewAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer span that intake has read.

    Attributes:
        tenant: of the token or stream key, never of the payload.
        priority: 1 goes to `check.high`.
        weight: 1 / sampling probability, > 0.
        rate_version: version of the sampling row that decided.
        pairs: estimated claim x passage pairs.
        answered_at: end of the answer span, nanoseconds since the epoch; 0 = unknown.
        state, reason: `pending`, or `not_assessable` with a reason.
        body: JSON of the `Interaction`.
        environment, model, prompt_version: labels for counting an answer that is not assessable.
    """

    tenant: str
    trace_id: str
    span_id: str
    app: str
    body: bytes
    origin: Origin = "production"
    priority: int = 0
    weight: float = 1.0
    rate_version: int = 0
    pairs: int = 0
    answered_at: int = 0
    state: Literal["pending", "not_assessable"] = "pending"
    reason: str | None = None
    environment: str = ""
    model: str = ""
    prompt_version: str = ""


class Inserted(msgspec.Struct, frozen=True, kw_only=True):
    """A ledger row that is new."""

    evaluation_id: int
    trace_id: str
    span_id: str
    state: State


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed answer.

    Attributes:
        day: partition of its rows.
        attempts: started attempts, this one included; counted anew once the answer is alone (`mark_solo`).
        body: JSON of the `Interaction`; empty when retention or an erasure has removed it.
        answered_at: nanoseconds since the epoch; 0 = unknown.
    """

    evaluation_id: int
    day: date
    attempts: int
    solo: bool
    origin: Origin
    weight: float
    tenant: str
    app: str
    trace_id: str
    span_id: str
    pairs: int
    answered_at: int
    body: bytes


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """A ledger row that has just reached a terminal state."""

    evaluation_id: int
    day: date
    tenant: str
    trace_id: str
    app: str
    origin: Origin
    state: State
    reason: str
    finalised_at: datetime


_INSERT: Final = """
INSERT INTO ledger (tenant, trace_id, span_id, day, app, state, reason, origin, priority, weight, rate_version,
                    pairs, answered_at, finalised_at)
SELECT new.tenant, new.trace_id, new.span_id, (now() AT TIME ZONE 'UTC')::date, new.app, new.state, new.reason,
       new.origin, new.priority, new.weight, new.rate_version, new.pairs, new.answered_at,
       CASE WHEN new.state <> 'pending' THEN now() END
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::int2[],
            %s::float8[], %s::int4[], %s::int4[], %s::timestamptz[])
  AS new (tenant, trace_id, span_id, app, state, reason, origin, priority, weight, rate_version, pairs, answered_at)
WHERE NOT EXISTS (SELECT FROM tombstone AS t WHERE t.tenant = new.tenant AND t.trace_id = new.trace_id)
ORDER BY new.tenant, new.trace_id, new.span_id
ON CONFLICT (tenant, trace_id, span_id) DO NOTHING
RETURNING evaluation_id, tenant, trace_id, span_id, state, day
"""


def insert(connection: psycopg.Connection[TupleRow], answers: Sequence[NewAnswer]) -> list[Inserted]:
    """Write new answers; leave known ones, and those of erased traces, as they are.

    Args:
        connection: inside a transaction; nothing is committed.
        answers: best 100 to 500 at once.

    Returns:
        The rows that are new. Those `not_assessable` are final at once, and counted.
    """
    given = {(fit.tenant, fit.trace_id, fit.span_id): fit for fit in map(_fit, reversed(answers))}
    if not given:
        return []
    new = connection.execute(_INSERT, _columns(list(given.values()))).fetchall()
    columns = (("day", "date"), ("evaluation_id", "int8"), ("body", "jsonb"))
    if new:
        bodies = ((row[5], row[0], rows.jsonb(given[row[1], row[2], row[3]].body)) for row in new)
        rows.write(connection, "interaction", columns, bodies)
    _count_not_assessable(connection, [given[row[1], row[2], row[3]] for row in new if row[4] == "not_assessable"])
    return [Inserted(evaluation_id=row[0], trace_id=row[2], span_id=row[3], state=row[4]) for row in new]


def replace_pending(connection: psycopg.Connection[TupleRow], answers: Sequence[NewAnswer]) -> list[Inserted]:
    """Give answers that nobody has started to check their newer text; return those that were replaced.

    For late spans that re-open a trace. A started or finished answer stays as it is.
    """
    given = {(fit.tenant, fit.trace_id, fit.span_id): fit for fit in map(_fit, answers)}
    if not given:
        return []
    keys = sorted(given)
    open_rows = connection.execute(
        "SELECT l.evaluation_id, l.tenant, l.trace_id, l.span_id, l.state, l.day FROM ledger AS l"
        " JOIN unnest(%s::text[], %s::text[], %s::text[]) AS k (tenant, trace_id, span_id)"
        " USING (tenant, trace_id, span_id)"
        " WHERE l.state = 'pending' AND l.attempts = 0 ORDER BY l.evaluation_id FOR UPDATE OF l",
        tuple(list(column) for column in zip(*keys, strict=True)),
    ).fetchall()
    with connection.cursor() as cursor:
        for row in open_rows:
            answer = given[row[1], row[2], row[3]]
            cursor.execute(
                "UPDATE interaction SET body = %s WHERE day = %s AND evaluation_id = %s",
                (rows.jsonb(answer.body), row[5], row[0]),
            )
            cursor.execute("UPDATE ledger SET pairs = %s WHERE evaluation_id = %s", (answer.pairs, row[0]))
    return [Inserted(evaluation_id=row[0], trace_id=row[2], span_id=row[3], state=row[4]) for row in open_rows]


_CLAIM: Final = """
WITH mine AS (
  SELECT evaluation_id FROM ledger
  WHERE evaluation_id = ANY(%s) AND state IN ('pending', 'checking') AND (not_before IS NULL OR not_before <= now())
  ORDER BY evaluation_id FOR UPDATE
)
UPDATE ledger AS l SET state = 'checking', attempts = l.attempts + 1, not_before = NULL, updated_at = now()
FROM mine WHERE l.evaluation_id = mine.evaluation_id
RETURNING l.evaluation_id, l.day, l.attempts, l.solo, l.origin, l.weight, l.tenant, l.app, l.trace_id, l.span_id,
          l.pairs, l.answered_at
"""
_BODIES: Final = """
SELECT evaluation_id, convert_to(body::text, 'UTF8') FROM interaction
WHERE day = ANY(%s::date[]) AND evaluation_id = ANY(%s::int8[])
"""


def claim(connection: psycopg.Connection[TupleRow], ids: Sequence[int]) -> list[Work]:
    """Take answers for checking and count the attempt. COMMIT before the work starts: a crash must be counted.

    Returns:
        The answers among `ids` that are not finished and not put off, by id.
    """
    taken = connection.execute(_CLAIM, (list(ids),)).fetchall()
    if not taken:
        return []
    known = [row[0] for row in taken]
    days = sorted({row[1] for row in taken})
    with connection.cursor(binary=True) as cursor:
        bodies: dict[int, bytes] = dict(cursor.execute(_BODIES, (days, known)).fetchall())
    works = [work_of(row, bodies.get(row[0], b"")) for row in taken]
    return sorted(works, key=lambda work: work.evaluation_id)


def work_of(row: TupleRow, body: bytes) -> Work:
    """The work of one claimed row; the first twelve columns are those that `claim` returns."""
    return Work(
        evaluation_id=row[0],
        day=row[1],
        attempts=row[2],
        solo=row[3],
        origin=row[4],
        weight=row[5],
        tenant=row[6],
        app=row[7],
        trace_id=row[8],
        span_id=row[9],
        pairs=row[10],
        answered_at=rows.nanoseconds(row[11]),
        body=body,
    )


def mark_solo(connection: psycopg.Connection[TupleRow], ids: Sequence[int]) -> list[int]:
    """Put answers of a batch that died back as `pending`, to be sent each alone. Attempts count from 0 again.

    Returns:
        Ids to send; those that have finished meanwhile, or are alone already, are left out.
    """
    changed = connection.execute(
        "UPDATE ledger SET solo = true, attempts = 0, state = 'pending', updated_at = now() WHERE evaluation_id IN"
        " (SELECT evaluation_id FROM ledger WHERE evaluation_id = ANY(%s) AND state IN ('pending', 'checking')"
        "  AND NOT solo ORDER BY evaluation_id FOR UPDATE) RETURNING evaluation_id",
        (list(ids),),
    ).fetchall()
    return sorted(row[0] for row in changed)


def release(connection: psycopg.Connection[TupleRow], ids: Sequence[int], delay_seconds: float = 0.0) -> list[int]:
    """Give claimed answers back without counting the attempt: the failure was not theirs (F11, F18).

    Args:
        connection: inside a transaction.
        ids: claimed answers.
        delay_seconds: not to be claimed, and not sent by the reconciler, before this time has passed.
    """
    changed = connection.execute(
        "UPDATE ledger SET state = 'pending', attempts = greatest(attempts - 1, 0), updated_at = now(),"
        " not_before = CASE WHEN %(delay)s > 0 THEN now() + make_interval(secs => %(delay)s) END"
        " WHERE evaluation_id IN (SELECT evaluation_id FROM ledger WHERE evaluation_id = ANY(%(ids)s)"
        " AND state = 'checking' ORDER BY evaluation_id FOR UPDATE) RETURNING evaluation_id",
        {"delay": float(delay_seconds), "ids": list(ids)},
    ).fetchall()
    return sorted(row[0] for row in changed)


_FINISH: Final = """
WITH mine AS (
  SELECT l.evaluation_id, new.state, new.reason FROM ledger AS l
  JOIN unnest(%s::int8[], %s::text[], %s::text[]) AS new (evaluation_id, state, reason) USING (evaluation_id)
  WHERE l.state = ANY(%s) ORDER BY l.evaluation_id FOR UPDATE OF l
)
UPDATE ledger AS l
SET state = mine.state, reason = nullif(mine.reason, ''), finalised_at = now(), updated_at = now(), not_before = NULL
FROM mine WHERE l.evaluation_id = mine.evaluation_id
RETURNING l.evaluation_id, l.day, l.tenant, l.trace_id, l.app, l.origin, l.state, l.reason, l.finalised_at
"""


def finish(
    connection: psycopg.Connection[TupleRow],
    states: Mapping[int, tuple[State, str]],
    expected: Iterable[State] = CHECKABLE,
) -> list[Finish]:
    """Move answers to their terminal state and reason; return the rows that this call has moved, by id.

    Nothing is counted: `results.finalise`, `fail`, `dead_letter` and `expire` do that.
    """
    ids = sorted(states)
    words = [states[number] for number in ids]
    moved = connection.execute(
        _FINISH, (ids, [state for state, _ in words], [scrub.text(reason) for _, reason in words], list(expected))
    ).fetchall()
    found = [
        Finish(
            evaluation_id=row[0],
            day=row[1],
            tenant=row[2],
            trace_id=row[3],
            app=row[4],
            origin=row[5],
            state=row[6],
            reason=row[7] or "",
            finalised_at=row[8],
        )
        for row in moved
    ]
    return sorted(found, key=lambda row: row.evaluation_id)


def fail(
    connection: psycopg.Connection[TupleRow],
    ids: Sequence[int],
    reason: str,
    expected: Iterable[State] = CHECKABLE,
) -> list[int]:
    """End answers as `failed(reason)` and count them; return those that were not finished before."""
    done = finish(connection, dict.fromkeys(ids, ("failed", reason)), expected)
    count(connection, done, totals.FAILED)
    return [row.evaluation_id for row in done]


def dead_letter(
    connection: psycopg.Connection[TupleRow],
    evaluation_id: int,
    reason: DeadLetterReason,
    detail: str = "",
    expected: Iterable[State] = CHECKABLE,
) -> bool:
    """End an answer as `dead_letter(reason)`, keep a row about it, count it; False when it was finished before."""
    done = finish(connection, {evaluation_id: ("dead_letter", reason)}, expected)
    for row in done:
        dead_letters.add_answer(connection, row.tenant, evaluation_id, row.trace_id, row.app, reason, detail)
    count(connection, done, totals.DEAD_LETTERS)
    return bool(done)


def expire(connection: psycopg.Connection[TupleRow], older_than_seconds: float, limit: int = 500) -> list[int]:
    """End answers that waited too long as `expired` and count them (load shedding)."""
    old = connection.execute(
        "SELECT evaluation_id FROM ledger WHERE state IN ('pending', 'checking')"
        " AND created_at < now() - make_interval(secs => %s)"
        " ORDER BY evaluation_id LIMIT %s FOR UPDATE SKIP LOCKED",
        (float(older_than_seconds), limit),
    ).fetchall()
    done = finish(connection, {row[0]: ("expired", "") for row in old}) if old else []
    count(connection, done)
    return [row.evaluation_id for row in done]


def count(connection: psycopg.Connection[TupleRow], done: Sequence[Finish], metric: str | None = None) -> None:
    """Add finished rows to `states`, and to `metric` by their reason."""
    sums: dict[str, dict[TotalKey, float]] = defaultdict(lambda: defaultdict(float))
    for row in done:
        sums[row.tenant][TotalKey(totals.STATES, row.app, origin=row.origin, key=row.state)] += 1
        if metric:
            sums[row.tenant][TotalKey(metric, row.app, origin=row.origin, key=row.reason)] += 1
    for tenant in sorted(sums):
        totals.add(connection, tenant, sums[tenant])


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """An unfinished answer that has to be sent again. `high`: by the queue `check.high`."""

    evaluation_id: int
    tenant: str
    app: str
    origin: Origin
    state: State
    solo: bool
    high: bool


_DUE: Final = """
WITH late AS (
  SELECT evaluation_id FROM ledger
  WHERE (state = 'pending' AND (not_before <= now() OR (not_before IS NULL AND updated_at < now() - greatest(
           make_interval(secs => %(stuck)s), least(updated_at - created_at, interval '15 minutes')))))
     OR (state = 'checking' AND updated_at < now() - make_interval(secs => %(checking)s))
  ORDER BY priority DESC, evaluation_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE ledger AS l SET updated_at = now(), not_before = NULL FROM late WHERE l.evaluation_id = late.evaluation_id
RETURNING l.evaluation_id, l.tenant, l.app, l.origin, l.state, l.solo, l.priority
"""


def due(
    connection: psycopg.Connection[TupleRow], older_than: float, checking_older_than: float, limit: int = 1024
) -> list[Due]:
    """Find answers whose message is lost, and touch them. Send them, then commit.

    A pending row is due `older_than` seconds after it last moved; each further time after twice its age (at most
    15 minutes), so that a long queue is not doubled by us. One put off is due when its time comes.
    """
    found = connection.execute(
        _DUE, {"stuck": float(older_than), "checking": float(checking_older_than), "limit": limit}
    ).fetchall()
    return [
        Due(
            evaluation_id=row[0], tenant=row[1], app=row[2], origin=row[3], state=row[4], solo=row[5], high=row[6] > 0
        )
        for row in sorted(found, key=lambda row: (-row[6], row[0]))
    ]


def _fit(answer: NewAnswer) -> NewAnswer:
    # Keys must be the same before and after the database has seen them.
    names = (answer.tenant, answer.trace_id, answer.span_id, answer.app)
    tenant, trace_id, span_id, app = map(scrub.text, names)
    body = scrub.json(answer.body)
    if (tenant, trace_id, span_id, app) == names and body is answer.body:
        return answer
    return msgspec.structs.replace(answer, tenant=tenant, trace_id=trace_id, span_id=span_id, app=app, body=body)


def _columns(answers: Sequence[NewAnswer]) -> tuple[list[object], ...]:
    return (
        [answer.tenant for answer in answers],
        [answer.trace_id for answer in answers],
        [answer.span_id for answer in answers],
        [answer.app for answer in answers],
        [answer.state for answer in answers],
        [answer.reason and scrub.text(answer.reason) for answer in answers],
        [answer.origin for answer in answers],
        [answer.priority for answer in answers],
        [float(answer.weight) for answer in answers],
        [answer.rate_version for answer in answers],
        [answer.pairs for answer in answers],
        [rows.moment(answer.answered_at) for answer in answers],
    )


def _count_not_assessable(connection: psycopg.Connection[TupleRow], answers: Sequence[NewAnswer]) -> None:
    sums: dict[str, dict[TotalKey, float]] = defaultdict(lambda: defaultdict(float))
    for answer in answers:
        add = sums[answer.tenant]
        add[TotalKey(totals.STATES, answer.app, origin=answer.origin, key="not_assessable")] += 1
        labels = TotalKey(
            totals.NOT_ASSESSABLE,
            answer.app,
            answer.environment,
            answer.model,
            answer.prompt_version,
            "",
            answer.origin,
        )
        add[labels._replace(key=answer.reason or "")] += 1
        add[labels._replace(metric=totals.ANSWERS, key="not_assessable")] += answer.weight
        add[labels._replace(metric=totals.ANSWERS_RAW, key="not_assessable")] += 1
    for tenant in sorted(sums):
        totals.add(connection, tenant, sums[tenant])
