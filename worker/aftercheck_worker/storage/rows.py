"""COPY of many rows at once, and the two kinds of moments: nanoseconds in messages, `timestamptz` in tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

_NANOSECONDS: Final = 1_000_000_000
_LAST_SECOND: Final = 253_402_300_799


def write(
    connection: psycopg.Connection[TupleRow],
    table: str,
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[object]],
) -> None:
    """COPY rows into a table in binary form.

    Args:
        connection: inside a transaction.
        table: name of the table.
        columns: name and Postgres type of each value of a row.
        rows: the values; text must have gone through `scrub`.

    Raises:
        psycopg.Error: a row breaks a constraint; nothing is written.
    """
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(table), sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
    )
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types([kind for _, kind in columns])
        for row in rows:
            copy.write_row(row)


def jsonb(document: bytes) -> Jsonb:
    """Wrap JSON bytes, so that they are sent as they are."""
    return Jsonb(document, dumps=_as_it_is)


def _as_it_is(document: object) -> bytes:
    if not isinstance(document, bytes):
        raise TypeError("jsonb() takes bytes")
    return document


def moment(nanoseconds: int) -> datetime | None:
    """Turn nanoseconds since the epoch into a moment; None for 0 and for what no calendar holds."""
    if not 0 < nanoseconds < _LAST_SECOND * _NANOSECONDS:
        return None
    return datetime.fromtimestamp(nanoseconds / _NANOSECONDS, UTC)


def nanoseconds(at: datetime | None) -> int:
    """Turn a moment into nanoseconds since the epoch, None into 0 (microsecond precision)."""
    return 0 if at is None else round(at.timestamp() * 1_000_000) * 1000
