"""Partitions by day: made ahead, dropped when their text is too old, with a default child as a net."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from aftercheck_worker.storage import tables

DAYS_AHEAD = 3
_LOCK = 0x61667064
_CHILD = re.compile(r"^(?P<table>[a-z_]+)_p(?P<day>\d{8})$")


def child(table: str, day: date) -> str:
    """Name of a table's partition."""
    return f"{table}_p{day:%Y%m%d}"


def ahead(today: date, days: int = DAYS_AHEAD) -> list[date]:
    """Today and the following `days` days."""
    return [today + timedelta(days=offset) for offset in range(days + 1)]


def ensure(connection: psycopg.Connection[TupleRow], days: Iterable[date]) -> list[str]:
    """Make the missing partitions of `days`; return their names. Commits nothing.

    A partition whose rows already fell into the default child is left out: they stay there until retention.

    Raises:
        psycopg.errors.LockNotAvailable: a long query holds a table; try again later.
    """
    wanted = [(table, day) for day in sorted(set(days)) for table in tables.PARTITIONED]
    present = set(existing(connection))
    missing = [(table, day) for table, day in wanted if child(table, day) not in present]
    if not missing:
        return []
    made: list[str] = []
    with connection.transaction():
        connection.execute("SET LOCAL lock_timeout = '1s'")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        for table, day in missing:
            try:
                with connection.transaction():
                    connection.execute(_create(table, day))
            except psycopg.errors.CheckViolation:
                continue
            made.append(child(table, day))
    return made


def existing(connection: psycopg.Connection[TupleRow]) -> list[str]:
    """Names of all day partitions, oldest first, the default children left out."""
    rows = connection.execute(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " JOIN pg_class p ON p.oid = i.inhparent WHERE p.relname = ANY(%s)"
        " AND c.relnamespace = current_schema()::regnamespace",
        (list(tables.PARTITIONED),),
    ).fetchall()
    return sorted((str(name) for (name,) in rows if _CHILD.match(str(name))), key=lambda name: name[-8:])


def day_of(name: str) -> date:
    """The day of a partition by its name.

    Raises:
        ValueError: not the name of a day partition.
    """
    found = _CHILD.match(name)
    if found is None:
        raise ValueError(f"{name} is not a day partition")
    return datetime.strptime(found["day"], "%Y%m%d").date()  # noqa: DTZ007 - a date


def drop(connection: psycopg.Connection[TupleRow], name: str) -> None:
    """Remove one day partition with its rows. Commits nothing.

    Raises:
        psycopg.errors.LockNotAvailable: a long query holds the table; try again later.
    """
    day_of(name)
    with connection.transaction():
        connection.execute("SET LOCAL lock_timeout = '1s'")
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))


def _create(table: str, day: date) -> sql.Composed:
    return sql.SQL("CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES FROM ({}) TO ({})").format(
        sql.Identifier(child(table, day)),
        sql.Identifier(table),
        sql.Literal(day.isoformat()),
        sql.Literal((day + timedelta(days=1)).isoformat()),
    )
