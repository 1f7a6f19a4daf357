"""The audit log: who read text, erased, or changed a setting (S39). Append only."""

from __future__ import annotations

import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.storage import scrub


def note(connection: psycopg.Connection[TupleRow], actor: str, action: str, target: str = "") -> None:
    """Append a line; the caller commits."""
    connection.execute(
        "INSERT INTO audit (actor, action, target) VALUES (%s, %s, %s)",
        (scrub.text(actor), action, scrub.text(target)),
    )
