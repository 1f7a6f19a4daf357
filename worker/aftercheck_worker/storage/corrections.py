"""Confirmed corrections, kept as labels so that an erasure and retention reach them (R46)."""

from __future__ import annotations

from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction
from aftercheck_schemas.golden import GoldenCase
from aftercheck_worker.storage import scrub

STATUS: Final = "regression_case"


def interaction(connection: psycopg.Connection[TupleRow], tenant: str, evaluation_id: int) -> Interaction | None:
    """The stored interaction of a tenant's answer, None when it is unknown or its text is gone."""
    row = connection.execute(
        "SELECT body FROM ledger JOIN interaction USING (day, evaluation_id)"
        " WHERE tenant = %s AND evaluation_id = %s",
        (tenant, evaluation_id),
    ).fetchone()
    return None if row is None else msgspec.convert(row[0], Interaction)


def keep(connection: psycopg.Connection[TupleRow], evaluation_id: int, case: GoldenCase) -> None:
    """Keep the reviewed case of an answer; a later review replaces it. The caller commits."""
    connection.execute("DELETE FROM label WHERE evaluation_id = %s AND status = %s", (evaluation_id, STATUS))
    connection.execute(
        "INSERT INTO label (evaluation_id, reviewer, status, note) VALUES (%s, %s, %s, %s)",
        (evaluation_id, scrub.text(case.reviewer), STATUS, scrub.encode(case).decode()),
    )


def cases(connection: psycopg.Connection[TupleRow], tenant: str) -> list[GoldenCase]:
    """All reviewed cases of a tenant, oldest first."""
    found = connection.execute(
        "SELECT note FROM label JOIN ledger USING (evaluation_id) WHERE tenant = %s AND status = %s ORDER BY id",
        (tenant, STATUS),
    )
    return [msgspec.json.decode(row[0], type=GoldenCase) for row in found.fetchall()]
