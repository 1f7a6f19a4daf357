"""Sampling rates per app, versioned: a change is a new row, and every answer names the row that decided (R4)."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.storage import rows, scrub

EVERY_APP: Final = "*"
"""The tenant's default, for apps without a row of their own."""
RECENT_SECONDS: Final = 600
_LOCK: Final = 0x61667372

Mode = Literal["trace", "session"]


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """The rate now in force for an app.

    Attributes:
        app: name, or `*`.
        version: grows with every change of the tenant.
        rate: 0..1.
        mode: what is hashed, the trace id or the session id.
        recent: highest rate in force during the last 10 minutes, >= `rate`; samples are nested, so intake may
            pre-sample undecoded entries by it.
    """

    app: str
    version: int
    rate: float
    mode: Mode
    recent: float


_RATES: Final = """
WITH spans AS (
  SELECT app, version, rate, mode, lead(created_at) OVER (PARTITION BY app ORDER BY version) AS ended
  FROM sampling WHERE tenant = %s
)
SELECT DISTINCT ON (app) app, version, rate, mode,
       max(rate) FILTER (WHERE ended IS NULL OR ended > now() - make_interval(secs => %s)) OVER (PARTITION BY app)
FROM spans ORDER BY app, version DESC
"""


def rates(connection: psycopg.Connection[TupleRow], tenant: str) -> dict[str, Rate]:
    """Read the rates of a tenant by app; empty when none was ever set."""
    found = connection.execute(_RATES, (tenant, float(RECENT_SECONDS))).fetchall()
    return {row[0]: Rate(app=row[0], version=row[1], rate=row[2], mode=row[3], recent=row[4]) for row in found}


def set_rate(
    connection: psycopg.Connection[TupleRow],
    tenant: str,
    app: str,
    rate: float,
    mode: Mode = "trace",
    *,
    actor: str = "",
) -> int:
    """Put a new rate in force and write it into the audit log; return its version.

    Raises:
        psycopg.errors.CheckViolation: the rate is outside 0..1.
    """
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_LOCK, tenant))
        row = connection.execute(
            "INSERT INTO sampling (tenant, app, version, rate, mode, created_at) SELECT %s, %s,"
            " 1 + coalesce(max(version), 0), %s, %s, clock_timestamp() FROM sampling WHERE tenant = %s"
            " RETURNING version",
            (tenant, scrub.text(app), float(rate), mode, tenant),
        ).fetchone()
        version = int(row[0]) if row else 0
        details = {"tenant": tenant, "rate": rate, "mode": mode, "version": version}
        connection.execute(
            "INSERT INTO audit (actor, action, target, details) VALUES (%s, 'sampling.set', %s, %s)",
            (scrub.text(actor), scrub.text(app), rows.jsonb(scrub.encode(details))),
        )
    return version
