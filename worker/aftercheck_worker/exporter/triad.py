"""Reads the five-minute means of the RAG triad: the answers of the window, each with its judgement (R21).

The window comes from the evaluation's index; a judgement is then found by its key, so the cost grows with the judged
answers of five minutes and with nothing else. Of several repeats the median counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import psycopg
from psycopg.rows import TupleRow, class_row

from aftercheck_worker.exporter.reading import JudgedWindow

_JUDGED: Final = """
WITH answered AS (
  SELECT day, evaluation_id, run_id, app, environment, evaluator, quality,
         (details->'judge'->>'verifier')::float8 AS verifier,
         weight / (details->'judge'->>'probability')::float8 AS weight
  FROM evaluation
  WHERE finalised_at > now() - make_interval(secs => %(seconds)s) AND finalised_at <= now()
    AND run_id = 'online' AND origin = 'production' AND NOT late AND tenant = %(tenant)s AND details ? 'judge'
), scored AS (
  SELECT a.*, j.criterion, j.score
  FROM answered AS a, LATERAL (
    SELECT CASE criterion WHEN 'faithfulness' THEN 'groundedness' ELSE criterion END AS criterion,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY score) AS score
    FROM judgement AS j
    WHERE j.day = a.day AND j.evaluation_id = a.evaluation_id AND j.run_id = a.run_id
      AND score IS NOT NULL AND NOT j.late
    GROUP BY criterion
  ) AS j
), both_methods AS (
  SELECT app, environment, evaluator, quality, criterion, 'judge' AS method, score, weight FROM scored
  UNION ALL
  SELECT app, environment, evaluator, quality, 'groundedness', 'encoder', verifier, weight
  FROM scored WHERE criterion = 'groundedness' AND verifier IS NOT NULL
)
SELECT app, environment, evaluator, quality, criterion, method, count(*)::int AS evaluations,
       least(1, greatest(0, sum(weight * score) / sum(weight)))::float8 AS mean
FROM both_methods GROUP BY app, environment, evaluator, quality, criterion, method
"""


def read(connection: psycopg.Connection[TupleRow], names: Mapping[str, object]) -> tuple[JudgedWindow, ...]:
    """Read the means; empty without a judge.

    Args:
        connection: inside the snapshot of a refresh.
        names: `tenant` and `seconds`, the length of the window.
    """
    return tuple(connection.cursor(row_factory=class_row(JudgedWindow)).execute(_JUDGED, names).fetchall())
