"""Reads Postgres for one refresh: running totals, the five-minute window, and what is in flight.

A few statements over small or indexed sets; none counts rows of a payload table, so a scrape costs the same after a
million evaluations, and retention never looks like a counter reset.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import psycopg
from psycopg.rows import TupleRow, class_row

from aftercheck_worker import fatigue
from aftercheck_worker.exporter import triad
from aftercheck_worker.exporter.reading import (
    DesignEffect,
    EvaluatorInfo,
    Fatigue,
    SamePassages,
    Slope,
    Step,
    StoreReading,
    Total,
    Window,
)
from aftercheck_worker.storage import sessions

STATEMENT_SECONDS: Final = 3.0
"""Statement timeout of a refresh: with the 5 s timer, a lost Postgres is seen within 10 s (I9)."""

WINDOW_SECONDS: Final = 300

_TOTALS: Final = """
SELECT metric, app, environment, model, prompt_version, evaluator, origin, key, value
FROM total WHERE tenant = %(tenant)s
"""

_WINDOWS: Final = """
SELECT app, environment, evaluator, quality,
       count(*)::int AS evaluations,
       sum(weight * faithfulness) / sum(weight) AS faithfulness,
       coalesce(sum(weight) FILTER (WHERE hallucinated), 0) / sum(weight) AS hallucination
FROM evaluation
WHERE finalised_at > now() - make_interval(secs => %(seconds)s) AND finalised_at <= now()
  AND run_id = 'online' AND origin = 'production' AND NOT late AND tenant = %(tenant)s
  AND outcome IN ('grounded', 'ungrounded') AND faithfulness IS NOT NULL
GROUP BY app, environment, evaluator, quality
"""

FATIGUE_DAYS: Final = 7
FATIGUE_ROWS: Final = 30_000
RECENT_SECONDS: Final = 1800
RECENT_ROWS: Final = 10_000
"""Newest answers that the two statements below look at, so that they cost the same at any traffic."""

_RECENT: Final = """
WITH recent AS (
  SELECT app, environment, evaluator, quality, weight, faithfulness, details,
         CASE WHEN session_id = '' THEN 'e' || evaluation_id ELSE 's' || session_id END AS cluster
  FROM evaluation
  WHERE finalised_at > now() - make_interval(secs => %(recent)s) AND finalised_at <= now()
    AND run_id = 'online' AND origin = 'production' AND NOT late AND tenant = %(tenant)s
    AND outcome IN ('grounded', 'ungrounded') AND faithfulness IS NOT NULL
  ORDER BY finalised_at DESC LIMIT %(rows)s
)"""

_DESIGN: Final = (
    _RECENT  # noqa: S608 - two constants
    + """, mean AS (
  SELECT app, environment, evaluator, quality, count(*) AS n, sum(weight) AS total,
         sum(weight * faithfulness) / sum(weight) AS mean, var_samp(faithfulness) AS variance
  FROM recent GROUP BY app, environment, evaluator, quality
), residual AS (
  SELECT app, environment, evaluator, quality, cluster, sum(weight * (faithfulness - mean)) AS sum
  FROM recent JOIN mean USING (app, environment, evaluator, quality)
  GROUP BY app, environment, evaluator, quality, cluster
)
SELECT app, environment, evaluator, quality,
       greatest(1, CASE WHEN count(*) = 1 THEN n
                        ELSE sum(sum * sum) * count(*) / (count(*) - 1) / total ^ 2 / (variance / n) END)::float8
         AS effect
FROM residual JOIN mean USING (app, environment, evaluator, quality)
WHERE variance > 0 GROUP BY app, environment, evaluator, quality, n, total, variance
"""
)
"""Linearised (sandwich) variance of a weighted ratio mean with sessions as clusters, over s^2 / n. One session alone
counts as one observation."""

_SAME: Final = (
    _RECENT  # noqa: S608 - two constants
    + """, asked AS (
  SELECT app, environment, details->'retrieval'->>1 AS passages, count(DISTINCT details->'retrieval'->>0) AS questions
  FROM recent WHERE jsonb_array_length(details->'retrieval') = 2 GROUP BY app, environment, passages
)
SELECT app, environment, (max(questions) / sum(questions))::float8 AS share
FROM asked GROUP BY app, environment HAVING sum(questions) >= 20
"""
)

_EVALUATORS: Final = "SELECT name, version, coalesce(spec->>'quality', 'standard') AS quality FROM evaluator"

_LEDGER: Final = """
SELECT state, count(*)::int, extract(epoch FROM now() - min(created_at))::float8, max(updated_at)::text
FROM ledger WHERE state IN ('pending', 'checking', 'judging') AND tenant = %(tenant)s GROUP BY state
"""

_LAST: Final = "SELECT extract(epoch FROM max(finalised_at))::float8 FROM ledger"
_DEAD: Final = "SELECT count(*)::int FROM dead_letter WHERE resolved_at IS NULL AND tenant = %(tenant)s"


def read(connection: psycopg.Connection[TupleRow], tenant: str) -> StoreReading:
    """Read one consistent snapshot.

    Raises:
        psycopg.Error: Postgres does not answer, or a statement took too long.
    """
    names = {"tenant": tenant, "seconds": WINDOW_SECONDS, "recent": RECENT_SECONDS, "rows": RECENT_ROWS}
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        totals = connection.cursor(row_factory=class_row(Total)).execute(_TOTALS, names).fetchall()
        windows = connection.cursor(row_factory=class_row(Window)).execute(_WINDOWS, names).fetchall()
        judged = triad.read(connection, names)
        effects = connection.cursor(row_factory=class_row(DesignEffect)).execute(_DESIGN, names).fetchall()
        same = connection.cursor(row_factory=class_row(SamePassages)).execute(_SAME, names).fetchall()
        evaluators = connection.cursor(row_factory=class_row(EvaluatorInfo)).execute(_EVALUATORS).fetchall()
        ledger = connection.execute(_LEDGER, names).fetchall()
        last = connection.execute(_LAST).fetchone()
        dead = connection.execute(_DEAD, names).fetchone()
    ages = [float(age) for _, _, age, _ in ledger]
    return StoreReading(
        totals=tuple(totals),
        windows=tuple(windows),
        judged=judged,
        design_effects=tuple(effects),
        same_passages=tuple(same),
        evaluators=tuple(evaluators),
        in_flight={str(state): int(count) for state, count, _, _ in ledger},
        oldest_in_flight=max(ages) if ages else None,
        oldest_judging=next((float(age) for state, _, age, _ in ledger if state == "judging"), None),
        last_change=max((str(changed) for _, _, _, changed in ledger), default=""),
        last_finalised=float(last[0]) if last and last[0] is not None else None,
        dead_letters_open=int(dead[0]) if dead else 0,
    )


def read_fatigue(connection: psycopg.Connection[TupleRow], tenant: str) -> Fatigue:
    """Read the newest sessions and compute their slopes: a fraction of a second, so not at every refresh.

    Raises:
        psycopg.Error: Postgres does not answer, or the statement took too long.
    """
    since = datetime.now(UTC) - timedelta(days=FATIGUE_DAYS)
    found = fatigue.report(sessions.answers(connection, tenant, since, limit=FATIGUE_ROWS), partial=False)
    return Fatigue(
        slopes=tuple(
            Slope(
                app=one.app,
                measure=one.measure,
                against=one.against,
                slope=one.slope,
                upper=one.high,
                sessions=one.sessions,
            )
            for one in found.slopes
            if one.sessions
        ),
        steps=tuple(
            Step(app=one.app, measure=one.measure, against=one.against, step=point.step, mean=point.mean)
            for one in found.curves
            for point in one.points
        ),
    )
