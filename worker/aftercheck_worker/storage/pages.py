"""What the pages list: answers, health (trust.md 3.4). Reading only, always one tenant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Final, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow, class_row

Connection = psycopg.Connection[TupleRow]
_S = TypeVar("_S", bound=msgspec.Struct)


class AnswerLine(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluated answer in a list. `thumbs` is the sum of the users' thumbs, None without any."""

    evaluation_id: int
    day: date
    trace_id: str
    span_id: str
    app: str
    model: str
    outcome: str
    faithfulness: float | None
    hallucinated: bool
    flagged: bool
    critical: int
    risk: float
    action: str
    claims: int
    quality: str
    evaluator_version: str
    origin: str
    finalised_at: datetime
    thumbs: float | None


class Open(msgspec.Struct, frozen=True, kw_only=True):
    """Answers that are not finished, by state, with the age of the oldest in seconds."""

    state: str
    answers: int
    oldest_seconds: float


_LINE: Final = """
SELECT evaluation_id, day, trace_id, span_id, app, model, outcome, faithfulness, hallucinated, flagged, critical,
       risk, action, claims, quality, evaluator_version, origin, finalised_at,
       (SELECT sum(f.value) FROM feedback AS f WHERE f.tenant = e.tenant AND f.trace_id = e.trace_id
        AND f.kind = 'thumb') AS thumbs
FROM evaluation AS e
WHERE run_id = 'online' AND tenant = %(tenant)s AND finalised_at >= %(start)s AND finalised_at < %(end)s
  AND day >= %(start)s::date - 2 AND (%(app)s = '' OR app = %(app)s)
"""
_NEWEST: Final = (
    _LINE
    + """
  AND (%(outcome)s = '' OR outcome = %(outcome)s) AND (NOT %(bad)s OR flagged)
ORDER BY finalised_at DESC LIMIT %(limit)s
"""
)
_WORST: Final = (
    _LINE
    + """
  AND flagged AND origin = 'production' ORDER BY critical DESC, finalised_at DESC LIMIT %(limit)s
"""
)


def answers(
    connection: Connection,
    tenant: str,
    start: datetime,
    end: datetime,
    *,
    app: str = "",
    outcome: str = "",
    bad: bool = False,
    limit: int = 100,
) -> list[AnswerLine]:
    """Answers that were finalised in [start, end), newest first."""
    values = {
        "tenant": tenant,
        "start": start,
        "end": end,
        "app": app,
        "outcome": outcome,
        "bad": bad,
        "limit": limit,
    }
    return _read(connection, AnswerLine, _NEWEST, values)


def worst(
    connection: Connection, tenant: str, start: datetime, end: datetime, *, app: str = "", limit: int = 50
) -> list[AnswerLine]:
    """Flagged production answers that were finalised in [start, end), those with the most critical claims first."""
    values = {"tenant": tenant, "start": start, "end": end, "app": app, "limit": limit}
    return _read(connection, AnswerLine, _WORST, values)


def unfinished(connection: Connection, tenant: str) -> list[Open]:
    """Answers in flight."""
    statement = """
    SELECT state, count(*) AS answers, extract(epoch FROM now() - min(created_at))::float8 AS oldest_seconds
    FROM ledger WHERE tenant = %(tenant)s AND state IN ('pending', 'checking', 'judging')
    GROUP BY state ORDER BY state
    """
    return _read(connection, Open, statement, {"tenant": tenant})


def _read(connection: Connection, kind: type[_S], statement: str, values: Mapping[str, object]) -> list[_S]:
    with connection.cursor(row_factory=class_row(kind)) as cursor:
        return cursor.execute(statement.encode(), values).fetchall()
