"""What could not be handled, kept with the reason until somebody retries or drops it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas.vocabulary import DeadLetterReason
from aftercheck_worker.storage import rows, scrub

MAX_PAYLOAD_BYTES: Final = 1024 * 1024
"""A larger payload is kept by its hash and size only: a dead letter must not fill the disk."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """One dead letter, its payload left out.

    Attributes:
        entry_id: id of the stream entry, "" for an answer.
        evaluation_id: the answer, None for a stream entry.
        fields: clear header of the stream entry.
        payload_bytes: kept bytes of the payload; 0 when it was too large or none.
        resolution: `retried` or `dropped`, with `resolved_at`.
    """

    id: int
    tenant: str
    entry_id: str
    evaluation_id: int | None
    trace_id: str
    app: str
    reason: str
    detail: str
    fields: dict[str, str]
    payload_bytes: int
    payload_sha256: str
    created_at: datetime
    resolved_at: datetime | None
    resolution: str | None


_ADD: Final = """
INSERT INTO dead_letter (tenant, entry_id, evaluation_id, trace_id, app, reason, detail, fields, payload,
                         payload_sha256)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (tenant, entry_id) WHERE entry_id <> '' DO NOTHING RETURNING id
"""


def add_entry(
    connection: psycopg.Connection[TupleRow],
    tenant: str,
    entry_id: str,
    reason: DeadLetterReason,
    *,
    detail: str = "",
    trace_id: str = "",
    app: str = "",
    fields: Mapping[str, str] | None = None,
    payload: bytes = b"",
) -> int | None:
    """Keep a stream entry; None when it was kept before (the same entry delivered twice)."""
    known = {scrub.text(name): scrub.text(value) for name, value in (fields or {}).items()}
    values = (tenant, entry_id, None, trace_id, app, reason, detail[:2000])
    return _add(connection, values, known, payload)


def add_answer(
    connection: psycopg.Connection[TupleRow],
    tenant: str,
    evaluation_id: int,
    trace_id: str,
    app: str,
    reason: DeadLetterReason,
    detail: str = "",
) -> int | None:
    """Keep an answer whose check never ended; its text stays in `interaction`."""
    return _add(connection, (tenant, "", evaluation_id, trace_id, app, reason, detail[:2000]), {}, b"")


def find(
    connection: psycopg.Connection[TupleRow], tenant: str, *, open_only: bool = True, limit: int = 100
) -> list[DeadLetter]:
    """Newest dead letters of a tenant."""
    return [
        _read(row)
        for row in connection.execute(
            _SELECT + " WHERE tenant = %s AND (resolved_at IS NULL OR NOT %s) ORDER BY id DESC LIMIT %s",
            (tenant, open_only, limit),
        ).fetchall()
    ]


def get(connection: psycopg.Connection[TupleRow], tenant: str, number: int) -> DeadLetter | None:
    """One dead letter of a tenant, open or closed."""
    row = connection.execute(_SELECT + " WHERE tenant = %s AND id = %s", (tenant, number)).fetchone()
    return None if row is None else _read(row)


def of_trace(connection: psycopg.Connection[TupleRow], tenant: str, trace_id: str) -> list[DeadLetter]:
    """Dead letters of one trace, oldest first."""
    found = connection.execute(_SELECT + " WHERE tenant = %s AND trace_id = %s ORDER BY id", (tenant, trace_id))
    return [_read(row) for row in found.fetchall()]


def payload(connection: psycopg.Connection[TupleRow], number: int) -> bytes | None:
    """The kept payload, None when there is none."""
    row = connection.execute("SELECT payload FROM dead_letter WHERE id = %s", (number,)).fetchone()
    return None if row is None or row[0] is None else bytes(row[0])


def resolve(connection: psycopg.Connection[TupleRow], number: int, resolution: str) -> bool:
    """Close a dead letter; False when it does not exist or is closed."""
    changed = connection.execute(
        "UPDATE dead_letter SET resolved_at = now(), resolution = %s, payload = NULL"
        " WHERE id = %s AND resolved_at IS NULL",
        (scrub.text(resolution), number),
    )
    return changed.rowcount == 1


def retry_answer(connection: psycopg.Connection[TupleRow], number: int) -> int | None:
    """Close the dead letter of an answer and make the answer pending again, alone; return its evaluation id."""
    row = connection.execute(
        "SELECT evaluation_id FROM dead_letter WHERE id = %s AND resolved_at IS NULL FOR UPDATE", (number,)
    ).fetchone()
    if row is None or row[0] is None:
        return None
    changed = connection.execute(
        "UPDATE ledger SET state = 'pending', reason = NULL, attempts = 0, solo = true, finalised_at = NULL,"
        " updated_at = now() WHERE evaluation_id = %s AND state = 'dead_letter'",
        (row[0],),
    )
    if changed.rowcount != 1:
        return None
    resolve(connection, number, "retried")
    return int(row[0])


_SELECT: Final = """
SELECT id, tenant, entry_id, evaluation_id, trace_id, app, reason, detail, fields, coalesce(length(payload), 0),
       payload_sha256, created_at, resolved_at, resolution FROM dead_letter
"""


def _add(
    connection: psycopg.Connection[TupleRow], values: tuple[object, ...], fields: dict[str, str], body: bytes
) -> int | None:
    digest = hashlib.sha256(body).hexdigest() if body else ""
    if len(body) > MAX_PAYLOAD_BYTES:
        fields = {**fields, "payload_bytes": str(len(body))}
        body = b""
    fit = [scrub.text(value) if isinstance(value, str) else value for value in values]
    row = connection.execute(_ADD, (*fit, rows.jsonb(scrub.encode(fields)), body or None, digest)).fetchone()
    return None if row is None else int(row[0])


def _read(row: TupleRow) -> DeadLetter:
    return DeadLetter(**dict(zip(DeadLetter.__struct_fields__, row, strict=True)))
