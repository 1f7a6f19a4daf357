"""Increments that were counted outside Postgres, added to the totals exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.storage import scrub, totals
from aftercheck_worker.storage.totals import TotalKey

_ADVANCE: Final = """
INSERT INTO total (metric, tenant, app, environment, model, prompt_version, evaluator, origin, key, value)
VALUES (%s, %s, '', '', '', '', '', '', '', %s)
ON CONFLICT (metric, tenant, app, environment, model, prompt_version, evaluator, origin, key)
DO UPDATE SET value = excluded.value WHERE total.value < excluded.value
RETURNING value
"""


def add_once(
    connection: psycopg.Connection[TupleRow],
    tenant: str,
    stamp: int,
    increments: Mapping[tuple[str, str, str], int],
) -> bool:
    """Add increments by (metric, app, key), unless a set with this stamp or a later one was added before.

    The row of the stamp is locked until the commit, so two callers with the same set cannot both add it.

    Args:
        connection: inside a transaction; nothing is committed.
        tenant: owner of the counters.
        stamp: microseconds, growing from set to set, below 2^53.
        increments: metrics of `totals.METRICS`.

    Returns:
        False when the set was known.
    """
    advanced = connection.execute(_ADVANCE, (totals.INTAKE_STAMP, scrub.text(tenant), float(stamp))).fetchone()
    if advanced is None:
        return False
    named = {TotalKey(metric, app=app, key=key): float(n) for (metric, app, key), n in increments.items()}
    totals.add(connection, tenant, named)
    return True
