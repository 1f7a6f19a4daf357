"""Erasure of a trace: every row that carries its text, a receipt, and a tombstone against late spans (S35)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

import msgspec
import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from aftercheck_worker.storage import rows, scrub

_DAILY: Final[tuple[LiteralString, ...]] = ("interaction", "evaluation", "claim", "verdict", "evidence", "judgement")


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure removed, by table. `known`: the trace had left something here, now or before.

    Totals keep their counts: they hold no text and name no trace.
    """

    trace_id: str
    erased_at: datetime
    known: bool
    removed: dict[str, int]


def erased(connection: psycopg.Connection[TupleRow], tenant: str, trace_ids: Sequence[str]) -> set[str]:
    """Return those of the traces that were erased."""
    found = connection.execute(
        "SELECT trace_id FROM tombstone WHERE tenant = %s AND trace_id = ANY(%s)", (tenant, list(trace_ids))
    )
    return {row[0] for row in found.fetchall()}


def erase(
    connection: psycopg.Connection[TupleRow], tenant: str, trace_id: str, *, actor: str, elsewhere: dict[str, int]
) -> Receipt:
    """Remove a trace. Idempotent; the caller commits.

    The ledger is locked against writers for the moment: an insert that began before the tombstone is visible would
    otherwise come after the deletes.

    Args:
        connection: inside a transaction.
        tenant: of the token.
        trace_id: 32 lower-case hex digits.
        actor: who asked, for the audit log.
        elsewhere: what the caller has removed outside Postgres, for the receipt.
    """
    connection.execute("LOCK TABLE ledger IN SHARE ROW EXCLUSIVE MODE")
    key = (tenant, trace_id)
    before = connection.execute("SELECT 1 FROM tombstone WHERE tenant = %s AND trace_id = %s", key).fetchone()
    found = connection.execute(
        "SELECT day, evaluation_id FROM ledger WHERE tenant = %s AND trace_id = %s", key
    ).fetchall()
    days, ids = [row[0] for row in found], [row[1] for row in found]
    removed = {table: _daily(connection, table, days, ids) for table in _DAILY}
    removed["label"] = connection.execute("DELETE FROM label WHERE evaluation_id = ANY(%s)", (ids,)).rowcount
    for table in ("feedback", "dead_letter"):
        statement = sql.SQL("DELETE FROM {} WHERE tenant = %s AND trace_id = %s").format(sql.Identifier(table))
        removed[table] = connection.execute(statement, key).rowcount
    removed["ledger"] = connection.execute(
        "UPDATE ledger SET state = 'erased', reason = NULL, updated_at = now(),"
        " finalised_at = coalesce(finalised_at, now())"
        " WHERE tenant = %s AND trace_id = %s AND state <> 'erased'",
        key,
    ).rowcount
    removed |= elsewhere
    row = connection.execute(
        "INSERT INTO tombstone (tenant, trace_id, receipt) VALUES (%s, %s, %s)"
        " ON CONFLICT (tenant, trace_id) DO UPDATE SET tenant = excluded.tenant RETURNING created_at",
        (*key, rows.jsonb(scrub.encode(removed))),
    ).fetchone()
    connection.execute(
        "INSERT INTO audit (actor, action, target, details) VALUES (%s, 'trace.erase', %s, %s)",
        (scrub.text(actor), trace_id, rows.jsonb(scrub.encode({"tenant": tenant, "removed": removed}))),
    )
    if row is None:
        raise AssertionError("RETURNING gave no row")
    known = before is not None or any(removed.values())
    return Receipt(trace_id=trace_id, erased_at=row[0], known=known, removed=removed)


def _daily(connection: psycopg.Connection[TupleRow], table: LiteralString, days: list[object], ids: list[int]) -> int:
    statement = sql.SQL("DELETE FROM {} WHERE day = ANY(%s) AND evaluation_id = ANY(%s)")
    return connection.execute(statement.format(sql.Identifier(table)), (days, ids)).rowcount
