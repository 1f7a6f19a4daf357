"""Reads Postgres for one refresh: running totals, the five-minute window, and what is in flight.

Three statements over small or indexed sets; none counts rows of a payload table, so a scrape costs the same after a
million evaluations, and retention never looks like a counter reset.
"""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg.rows import TupleRow, class_row

from aftercheck_worker.exporter.reading import EvaluatorInfo, StoreReading, Total, Window

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
    names = {"tenant": tenant, "seconds": WINDOW_SECONDS}
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        totals = connection.cursor(row_factory=class_row(Total)).execute(_TOTALS, names).fetchall()
        windows = connection.cursor(row_factory=class_row(Window)).execute(_WINDOWS, names).fetchall()
        evaluators = connection.cursor(row_factory=class_row(EvaluatorInfo)).execute(_EVALUATORS).fetchall()
        ledger = connection.execute(_LEDGER, names).fetchall()
        last = connection.execute(_LAST).fetchone()
        dead = connection.execute(_DEAD, names).fetchone()
    ages = [float(age) for _, _, age, _ in ledger]
    return StoreReading(
        totals=tuple(totals),
        windows=tuple(windows),
        evaluators=tuple(evaluators),
        in_flight={str(state): int(count) for state, count, _, _ in ledger},
        oldest_in_flight=max(ages) if ages else None,
        last_change=max((str(changed) for _, _, _, changed in ledger), default=""),
        last_finalised=float(last[0]) if last and last[0] is not None else None,
        dead_letters_open=int(dead[0]) if dead else 0,
    )
