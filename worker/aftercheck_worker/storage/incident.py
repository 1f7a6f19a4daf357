"""What an incident's page reads: the alert's window against the one before it, and the claims that failed (R5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow, class_row

from aftercheck_worker.storage.pages import AnswerLine

Connection = psycopg.Connection[TupleRow]
_S = TypeVar("_S", bound=msgspec.Struct)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One value of one dimension, in the window and in the window before it. Raw counts of judged answers.

    Attributes:
        dimension: `all` with value "" is the whole window.
        bad: hallucinated answers.
        faithfulness: mean, None when nothing was judged.
    """

    dimension: str
    value: str
    judged: int
    bad: int
    faithfulness: float | None
    judged_before: int
    bad_before: int
    faithfulness_before: float | None


class Guilty(msgspec.Struct, frozen=True, kw_only=True):
    """The worst claim of an answer: a contradicted one first, then the severest, then the first."""

    evaluation_id: int
    claim_id: str
    text: str
    status: str


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to look at. `question` is "" and `guilty` None when its text is gone."""

    line: AnswerLine
    question: str
    guilty: Guilty | None


_CHANGES: Final = """
WITH judged AS (  -- first by all dimensions at once: a few hundred rows, whatever the traffic
  SELECT app, model, prompt_version, retriever_version, environment, evaluator || ' ' || left(evaluator_version, 12)
         AS ruler, finalised_at >= %(start)s AS now, count(*) AS judged, count(*) FILTER (WHERE hallucinated) AS bad,
         sum(faithfulness) AS faithful, count(faithfulness) AS measured
  FROM evaluation
  WHERE run_id = 'online' AND tenant = %(tenant)s AND origin = 'production' AND NOT late
    AND finalised_at >= %(before)s AND finalised_at < %(end)s AND day >= %(before)s::date - 2
    AND outcome IN ('grounded', 'ungrounded') AND (%(app)s = '' OR app = %(app)s)
  GROUP BY 1, 2, 3, 4, 5, 6, 7
)
SELECT d.dimension, d.value,
       coalesce(sum(judged) FILTER (WHERE now), 0)::int8 AS judged,
       coalesce(sum(bad) FILTER (WHERE now), 0)::int8 AS bad,
       sum(faithful) FILTER (WHERE now) / nullif(sum(measured) FILTER (WHERE now), 0)::float8 AS faithfulness,
       coalesce(sum(judged) FILTER (WHERE NOT now), 0)::int8 AS judged_before,
       coalesce(sum(bad) FILTER (WHERE NOT now), 0)::int8 AS bad_before,
       sum(faithful) FILTER (WHERE NOT now) / nullif(sum(measured) FILTER (WHERE NOT now), 0)::float8
       AS faithfulness_before
FROM judged, LATERAL (VALUES ('all', ''), ('app', app), ('model', model), ('prompt version', prompt_version),
                             ('retriever version', retriever_version), ('environment', environment),
                             ('evaluator', ruler)) AS d (dimension, value)
GROUP BY d.dimension, d.value
ORDER BY d.dimension, 4 DESC, 3 DESC, d.value LIMIT 300
"""


def changes(connection: Connection, tenant: str, start: datetime, end: datetime, *, app: str = "") -> list[Change]:
    """Compare [start, end) with the window of the same length before it; as alerts do, without late answers."""
    values = {"tenant": tenant, "start": start, "end": end, "before": start - (end - start), "app": app}
    return _read(connection, Change, _CHANGES, values)


_GUILTY: Final = """
SELECT DISTINCT ON (c.evaluation_id) c.evaluation_id, c.claim_id, left(c.text, 300) AS text, v.status
FROM claim AS c JOIN verdict AS v USING (day, evaluation_id, run_id, evaluator_version, claim_id)
WHERE c.day = ANY(%(days)s) AND c.evaluation_id = ANY(%(ids)s) AND c.run_id = 'online'
  AND v.status IN ('contradicted', 'not_found', 'unclear')
ORDER BY c.evaluation_id, array_position(ARRAY['contradicted', 'not_found', 'unclear'], v.status),
         array_position(ARRAY['high', 'medium', 'low'], c.severity), c.start
"""
_QUESTIONS: Final = """
SELECT evaluation_id, left(body->>'question', 200) FROM interaction
WHERE day = ANY(%(days)s) AND evaluation_id = ANY(%(ids)s)
"""


def look(connection: Connection, lines: Sequence[AnswerLine]) -> list[Look]:
    """Add the question and the worst claim to each answer, in order."""
    key = {"days": sorted({line.day for line in lines}), "ids": [line.evaluation_id for line in lines]}
    guilty = {one.evaluation_id: one for one in _read(connection, Guilty, _GUILTY, key)} if lines else {}
    rows = connection.execute(_QUESTIONS, key).fetchall() if lines else []
    questions = {int(row[0]): str(row[1] or "") for row in rows}
    return [
        Look(line=line, question=questions.get(line.evaluation_id, ""), guilty=guilty.get(line.evaluation_id))
        for line in lines
    ]


def _read(connection: Connection, kind: type[_S], statement: str, values: Mapping[str, object]) -> list[_S]:
    with connection.cursor(row_factory=class_row(kind)) as cursor:
        return cursor.execute(statement.encode(), values).fetchall()
