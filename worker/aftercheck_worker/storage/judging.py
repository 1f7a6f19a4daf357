"""Answers between verifier and judge: the ledger state `judging`, and the verifier's evaluation kept beside it.

The verifier's evaluation waits as one document in the judgement table (criterion `verifier`); nothing of it is
counted or shown before the answer is final, and it goes when the answer is. Whoever moves the ledger row out of
`judging` writes the result (`results.finalise`), so an answer is finished once, by the judge or without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Evaluation, Judgement
from aftercheck_schemas.vocabulary import Origin, State
from aftercheck_worker.storage import rows, scrub
from aftercheck_worker.storage.ledger import CHECKABLE, Work, work_of
from aftercheck_worker.storage.results import ONLINE

JUDGING: Final[tuple[State, ...]] = ("judging",)
PROVISIONAL: Final = "verifier"
"""Criterion under which the verifier's evaluation waits."""


class Provisional(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for the judge.

    Attributes:
        evaluation: the verifier's, to be final without a judge.
        why: `band`, `audit` or `all`. audit: the answer is in the audit sample.
        probability: that an answer like this is judged, (0, 1].
        claims: ids of the claims that the judge decides.
    """

    evaluation: Evaluation
    why: str
    audit: bool
    probability: float
    claims: tuple[str, ...] = ()


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in `judging`, claimed. `left`: seconds until its deadline; `provisional` None when it is gone."""

    work: Work
    left: float
    provisional: Provisional | None


class Overdue(msgspec.Struct, frozen=True, kw_only=True):
    """A judging answer whose message is lost or was put off."""

    evaluation_id: int
    tenant: str
    app: str
    origin: Origin


_COLUMNS: Final = (
    ("day", "date"),
    ("evaluation_id", "int8"),
    ("run_id", "text"),
    ("evaluator_version", "text"),
    ("criterion", "text"),
    ("repeat", "int2"),
    ("score", "float8"),
    ("body", "jsonb"),
    ("late", "bool"),
)
_PARK: Final = """
WITH mine AS (
  SELECT evaluation_id FROM ledger WHERE evaluation_id = ANY(%s) AND state = ANY(%s) ORDER BY evaluation_id FOR UPDATE
)
UPDATE ledger AS l SET state = 'judging', judge_deadline = now() + make_interval(secs => %s), not_before = NULL,
       updated_at = now()
FROM mine WHERE l.evaluation_id = mine.evaluation_id RETURNING l.evaluation_id, l.day
"""


def park(connection: psycopg.Connection[TupleRow], items: Mapping[int, Provisional], seconds: float) -> list[int]:
    """Move checked answers to `judging` and keep what the verifier found; the caller commits, then sends.

    Args:
        connection: inside a transaction.
        items: by evaluation id.
        seconds: until the verifier's evaluation becomes final.

    Returns:
        The ids that were moved; the others had been finished by another worker.
    """
    if not items:
        return []
    moved = connection.execute(_PARK, (sorted(items), list(CHECKABLE), float(seconds))).fetchall()
    _drop(connection, [row[1] for row in moved], [row[0] for row in moved])
    rows.write(
        connection,
        "judgement",
        _COLUMNS,
        (
            (
                row[1],
                row[0],
                ONLINE,
                scrub.text(items[row[0]].evaluation.evaluator_version),
                PROVISIONAL,
                0,
                None,
                rows.jsonb(scrub.encode(items[row[0]])),
                False,
            )
            for row in moved
        ),
    )
    return sorted(row[0] for row in moved)


_FIELDS: Final = """l.evaluation_id, l.day, l.attempts, l.solo, l.origin, l.weight, l.tenant, l.app, l.trace_id,
          l.span_id, l.pairs, l.answered_at, extract(epoch FROM l.judge_deadline - now())::float8"""
_TAKE: Final = """
WITH mine AS (
  SELECT evaluation_id FROM ledger
  WHERE state = 'judging' AND judge_deadline > now() AND (not_before IS NULL OR not_before <= now())
  ORDER BY evaluation_id <> ALL(%(ids)s), evaluation_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE ledger AS l SET not_before = now() + make_interval(secs => %(lease)s), updated_at = now()
FROM mine WHERE l.evaluation_id = mine.evaluation_id RETURNING
"""
_CLAIM: Final = _TAKE + _FIELDS
_LATE: Final = (
    "SELECT "  # noqa: S608 - two constants
    + _FIELDS
    + " FROM ledger AS l WHERE l.state = 'judging' AND l.judge_deadline <= now() ORDER BY l.evaluation_id LIMIT %s"
)
_BODIES: Final = """
SELECT i.evaluation_id, convert_to(i.body::text, 'UTF8'), convert_to(j.body::text, 'UTF8')
FROM interaction AS i LEFT JOIN judgement AS j
  ON j.day = i.day AND j.evaluation_id = i.evaluation_id AND j.run_id = 'online' AND j.criterion = 'verifier'
WHERE i.day = ANY(%s::date[]) AND i.evaluation_id = ANY(%s::int8[])
"""
_decoder: Final = msgspec.json.Decoder(Provisional)


def claim(
    connection: psycopg.Connection[TupleRow], ids: Sequence[int], lease: float, limit: int = 32
) -> list[Waiting]:
    """Take answers for judging; COMMIT before the work starts.

    Args:
        connection: inside a transaction.
        ids: evaluation ids of one message; they go first.
        lease: seconds in which a second delivery of the message finds nothing to do.
        limit: how many to take.

    Returns:
        Answers that wait, are not put off, not overdue and not leased, by id.
    """
    names = {"ids": list(ids), "lease": float(lease), "limit": limit}
    return _waiting(connection, connection.execute(_CLAIM.encode(), names).fetchall())


def late(connection: psycopg.Connection[TupleRow], limit: int) -> list[Waiting]:
    """Find answers whose deadline has passed; nothing is locked, `results.finalise` decides who ends them."""
    return _waiting(connection, connection.execute(_LATE.encode(), (limit,)).fetchall())


def _waiting(connection: psycopg.Connection[TupleRow], taken: Sequence[TupleRow]) -> list[Waiting]:
    if not taken:
        return []
    key = (sorted({row[1] for row in taken}), [row[0] for row in taken])
    with connection.cursor(binary=True) as cursor:
        found: dict[int, tuple[bytes, bytes | None]] = {
            row[0]: (row[1], row[2]) for row in cursor.execute(_BODIES, key).fetchall()
        }
    out = [_one(row, *found.get(row[0], (b"", None))) for row in taken]
    return sorted(out, key=lambda one: one.work.evaluation_id)


def _one(row: TupleRow, body: bytes, kept: bytes | None) -> Waiting:
    work = work_of(row, body)
    try:
        provisional = _decoder.decode(kept) if kept else None
    except msgspec.DecodeError:  # written by a newer release
        provisional = None
    return Waiting(work=work, left=float(row[12]), provisional=provisional)


def put_off(connection: psycopg.Connection[TupleRow], ids: Sequence[int], seconds: float) -> None:
    """Let answers wait for an endpoint that said when to come back; the reconciler sends them again."""
    connection.execute(
        "UPDATE ledger SET not_before = now() + make_interval(secs => %(delay)s), updated_at = now()"
        " WHERE evaluation_id IN (SELECT evaluation_id FROM ledger WHERE evaluation_id = ANY(%(ids)s)"
        " AND state = 'judging' ORDER BY evaluation_id FOR UPDATE)",
        {"delay": float(seconds), "ids": list(ids)},
    )


_DUE: Final = """
WITH due AS (
  SELECT evaluation_id FROM ledger
  WHERE state = 'judging' AND judge_deadline > now()
    AND (not_before <= now() OR (not_before IS NULL AND updated_at < now() - make_interval(secs => %s)))
  ORDER BY evaluation_id LIMIT %s FOR UPDATE SKIP LOCKED
)
UPDATE ledger AS l SET updated_at = now(), not_before = NULL FROM due WHERE l.evaluation_id = due.evaluation_id
RETURNING l.evaluation_id, l.tenant, l.app, l.origin
"""


def due(connection: psycopg.Connection[TupleRow], stuck: float, limit: int) -> list[Overdue]:
    """Find judging answers to send again, and touch them: put off until now, or unseen for `stuck` seconds."""
    found = connection.execute(_DUE, (float(stuck), limit)).fetchall()
    return [Overdue(evaluation_id=row[0], tenant=row[1], app=row[2], origin=row[3]) for row in sorted(found)]


def open_ids(connection: psycopg.Connection[TupleRow], ids: Sequence[int]) -> set[int]:
    """Return those that still wait for their judge, locked until the commit; the rest has been finished."""
    found = connection.execute(
        "UPDATE ledger SET updated_at = now() WHERE evaluation_id IN (SELECT evaluation_id FROM ledger"
        " WHERE evaluation_id = ANY(%s) AND state = 'judging' ORDER BY evaluation_id FOR UPDATE)"
        " RETURNING evaluation_id",
        (list(ids),),
    ).fetchall()
    return {row[0] for row in found}


def settle(connection: psycopg.Connection[TupleRow], works: Sequence[Work]) -> None:
    """Remove the verifier's waiting documents of answers that are final now."""
    _drop(connection, [work.day for work in works], [work.evaluation_id for work in works])


def _drop(connection: psycopg.Connection[TupleRow], days: Sequence[object], ids: Sequence[int]) -> None:
    if ids:
        connection.execute(
            "DELETE FROM judgement WHERE day = ANY(%s) AND evaluation_id = ANY(%s) AND criterion = %s",
            (sorted({str(day) for day in days}), list(ids), PROVISIONAL),
        )


def record(connection: psycopg.Connection[TupleRow], work: Work, version: str, judgement: Judgement) -> None:
    """Keep a judgement, by criterion and repeat; a second one of the same answer changes nothing."""
    _insert(connection, work, version, judgement, is_late=False)


def record_late(connection: psycopg.Connection[TupleRow], work: Work, judgement: Judgement) -> bool:
    """Keep a judgement that came after its answer was final; it changes nothing else. False for an erased answer."""
    # Not a plain SELECT: an erasure locks the ledger against writers, and must not be overtaken by this text.
    final = connection.execute(
        "UPDATE ledger SET updated_at = updated_at WHERE evaluation_id = %s AND state = 'scored'"
        " RETURNING evaluation_id",
        (work.evaluation_id,),
    ).fetchone()
    version = connection.execute(
        "SELECT evaluator_version FROM evaluation WHERE day = %s AND evaluation_id = %s AND run_id = 'online'",
        (work.day, work.evaluation_id),
    ).fetchone()
    if final is None or version is None:
        return False
    _insert(connection, work, version[0], judgement, is_late=True)
    return True


def _insert(
    connection: psycopg.Connection[TupleRow], work: Work, version: str, judgement: Judgement, *, is_late: bool
) -> None:
    document = rows.jsonb(scrub.encode(judgement))
    scores: list[tuple[str, int, float | None]] = [
        *(("faithfulness", repeat, score) for repeat, score in enumerate(judgement.faithfulness)),
        ("context_relevance", 0, judgement.context_relevance),
        ("answer_relevance", 0, judgement.answer_relevance),
    ]
    if not judgement.faithfulness:
        scores.insert(0, ("faithfulness", 0, None))
    empty = rows.jsonb(b"{}")
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO judgement"
            " (day, evaluation_id, run_id, evaluator_version, criterion, repeat, score, body, late)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            [
                (
                    work.day,
                    work.evaluation_id,
                    ONLINE,
                    scrub.text(version),
                    criterion,
                    repeat,
                    score,
                    # The whole document once, with the first score; the others carry only their number.
                    document if criterion == "faithfulness" and repeat == 0 else empty,
                    is_late,
                )
                for criterion, repeat, score in scores
                if score is not None or criterion == "faithfulness"
            ],
        )
