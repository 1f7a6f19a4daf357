"""Users' thumbs beside the evaluator's word: four cells, correlations, and the queue of disagreements (R6)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow, class_row

Connection = psycopg.Connection[TupleRow]
_S = TypeVar("_S", bound=msgspec.Struct)


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A user and the evaluator who say opposite things of one answer. `question` is "" when the text is gone."""

    evaluation_id: int
    trace_id: str
    span_id: str
    app: str
    outcome: str
    value: float
    comment: str | None
    question: str
    created_at: datetime
    reviewed: bool


class CellCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Answers by what evaluator and users said; one whose thumbs cancel out is in no cell."""

    app: str
    evaluator: str
    evaluator_version: str
    grounded_up: int
    grounded_down: int
    ungrounded_up: int
    ungrounded_down: int


class Correlated(msgspec.Struct, frozen=True, kw_only=True):
    """Pearson's correlation of thumb (-1, 1) and a score of the RAG triad (0..1); None where one is constant."""

    app: str
    evaluator_version: str
    criterion: str
    answers: int
    value: float | None


NEWEST: Final = 5_000
"""Thumbs that are read, the newest: the pages stay fast however many there are."""
_NEW: Final = """
WITH f AS MATERIALIZED (
  SELECT trace_id, span_id, tenant, value, comment, created_at FROM feedback
  WHERE tenant = %(tenant)s AND kind = 'thumb' ORDER BY created_at DESC LIMIT %(newest)s
)"""
_SAID: Final = """, said AS (
  SELECT e.day, e.evaluation_id, e.app, e.evaluator, e.evaluator_version, e.outcome, e.faithfulness,
         sign(sum(f.value)) AS thumb
  FROM f JOIN evaluation AS e
    ON e.trace_id = f.trace_id AND e.tenant = f.tenant AND e.run_id = 'online' AND f.span_id IN ('', e.span_id)
  WHERE e.outcome IN ('grounded', 'ungrounded')
  GROUP BY 1, 2, 3, 4, 5, 6, 7
)
"""
_CELLS: Final = """
SELECT app, evaluator, evaluator_version,
       count(*) FILTER (WHERE outcome = 'grounded' AND thumb > 0) AS grounded_up,
       count(*) FILTER (WHERE outcome = 'grounded' AND thumb < 0) AS grounded_down,
       count(*) FILTER (WHERE outcome = 'ungrounded' AND thumb > 0) AS ungrounded_up,
       count(*) FILTER (WHERE outcome = 'ungrounded' AND thumb < 0) AS ungrounded_down
FROM said WHERE thumb <> 0 GROUP BY 1, 2, 3 ORDER BY count(*) DESC, 1, 3 LIMIT 40
"""
_CORRELATIONS: Final = """
SELECT app, evaluator_version, criterion, count(*) AS answers, corr(thumb, score) AS value
FROM (
  SELECT app, evaluator_version, 'faithfulness' AS criterion, thumb, faithfulness AS score FROM said
  UNION ALL
  SELECT app, said.evaluator_version, criterion, thumb, avg(score)
  FROM said JOIN judgement AS j USING (day, evaluation_id)
  WHERE j.run_id = 'online' AND criterion IN ('context_relevance', 'answer_relevance') AND NOT j.late
  GROUP BY 1, 2, 3, 4, said.evaluation_id
) AS scored
WHERE thumb <> 0 AND score IS NOT NULL GROUP BY 1, 2, 3
"""
_DISAGREEMENTS: Final = """, worst AS (
  SELECT e.day, e.evaluation_id, e.trace_id, e.span_id, e.app, e.outcome, f.value, f.comment, f.created_at,
         e.evaluation_id IN (SELECT l.evaluation_id FROM label AS l WHERE l.status = 'regression_case') AS reviewed
  FROM f JOIN evaluation AS e
    ON e.trace_id = f.trace_id AND e.tenant = f.tenant AND e.run_id = 'online' AND f.span_id IN ('', e.span_id)
  WHERE (f.value < 0 AND e.outcome = 'grounded') OR (f.value > 0 AND e.outcome = 'ungrounded')
  ORDER BY reviewed, f.value, f.created_at DESC LIMIT 50
)
SELECT w.evaluation_id, trace_id, span_id, app, outcome, value, comment, created_at, reviewed,
       coalesce((SELECT left(i.body->>'question', 200) FROM interaction AS i
                 WHERE i.day = w.day AND i.evaluation_id = w.evaluation_id), '') AS question
FROM worst AS w ORDER BY reviewed, value, created_at DESC
"""


def cells(connection: Connection, tenant: str) -> list[CellCounts]:
    """Count the four cells per app and evaluator version, those with most thumbs first."""
    return _read(connection, CellCounts, _NEW + _SAID + _CELLS, tenant)


def correlations(connection: Connection, tenant: str) -> list[Correlated]:
    """Correlate thumbs with every triad score, per app and evaluator version."""
    return _read(connection, Correlated, _NEW + _SAID + _CORRELATIONS, tenant)


def disagreements(connection: Connection, tenant: str) -> list[Disagreement]:
    """Open ones before reviewed ones; thumbs down on grounded answers (evaluator gaps) before the reverse."""
    return _read(connection, Disagreement, _NEW + _DISAGREEMENTS, tenant)


def _read(connection: Connection, kind: type[_S], statement: str, tenant: str) -> list[_S]:
    values: Mapping[str, object] = {"tenant": tenant, "newest": NEWEST}
    with connection.cursor(row_factory=class_row(kind)) as cursor:
        return cursor.execute(statement.encode(), values).fetchall()
