"""Old text goes, counts stay: whole partitions by day, and what the default children hold in small batches (S36).

Text: questions, answers, passages, claims, evidence, judgements, comments, payloads of dead letters. Scores and the
ledger carry no text and live for `verdict_days`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final, LiteralString

import msgspec
import psycopg
from psycopg import sql
from psycopg.rows import TupleRow

from aftercheck_worker.storage import partitions

BATCH: Final = 5_000
"""Most rows that one transaction deletes."""
TEXT_TABLES: Final = ("interaction", "claim", "evidence", "judgement")
SCORE_TABLES: Final = ("evaluation", "verdict")


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """What one sweep removed. `busy`: partitions left for the next sweep because a query used them."""

    partitions: tuple[str, ...] = ()
    rows: int = 0
    busy: tuple[str, ...] = ()


def sweep(
    connection: psycopg.Connection[TupleRow],
    retention_days: int,
    verdict_days: int = 365,
    *,
    today: date | None = None,
    batch: int = BATCH,
) -> Swept:
    """Remove text older than `retention_days` and scores older than `verdict_days`. Commits as it goes.

    Args:
        connection: outside any transaction.
        retention_days: days that text is kept; today counts as day 0.
        verdict_days: days that scores and ledger rows are kept, at least `retention_days`.
        today: for tests; the current UTC day by default.
        batch: rows per transaction.
    """
    now = today or datetime.now(UTC).date()
    text_from = now - timedelta(days=retention_days)
    scores_from = now - timedelta(days=max(retention_days, verdict_days))
    starts: dict[str, date] = dict.fromkeys(TEXT_TABLES, text_from)
    starts.update((name, scores_from) for name in SCORE_TABLES)
    dropped, busy = _drop(connection, starts)
    removed = sum(
        _in_batches(connection, _DELETE_DEFAULT.format(sql.Identifier(f"{table}_pdefault")), first, batch)
        for table, first in starts.items()
    )
    removed += sum(_in_batches(connection, sql.SQL(statement), text_from, batch) for statement in _TEXT_COLUMNS)
    removed += _in_batches(connection, sql.SQL(_LEDGER), scores_from, batch)
    return Swept(partitions=tuple(dropped), rows=removed, busy=tuple(busy))


def _drop(connection: psycopg.Connection[TupleRow], starts: dict[str, date]) -> tuple[list[str], list[str]]:
    dropped: list[str] = []
    busy: list[str] = []
    with connection.transaction():
        names = partitions.existing(connection)
    for name in names:
        table = name.rpartition("_p")[0]
        if table not in starts or partitions.day_of(name) >= starts[table]:
            continue
        try:
            partitions.drop(connection, name)
        except psycopg.errors.LockNotAvailable:
            busy.append(name)
        else:
            dropped.append(name)
    return dropped, busy


_DELETE_DEFAULT: Final = sql.SQL(
    "DELETE FROM {0} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {0} WHERE day < %s LIMIT %s))"
)
_TEXT_COLUMNS: Final[tuple[LiteralString, ...]] = (
    (
        "UPDATE feedback SET comment = NULL WHERE ctid = ANY(ARRAY("
        "SELECT ctid FROM feedback WHERE comment IS NOT NULL AND created_at < %s LIMIT %s))"
    ),
    (
        "UPDATE dead_letter SET payload = NULL, detail = '' WHERE ctid = ANY(ARRAY("
        "SELECT ctid FROM dead_letter WHERE (payload IS NOT NULL OR detail <> '') AND created_at < %s LIMIT %s))"
    ),
)
_LEDGER: Final = (
    "DELETE FROM ledger WHERE ctid = ANY(ARRAY(SELECT ctid FROM ledger WHERE finalised_at < %s LIMIT %s))"
)


def _in_batches(
    connection: psycopg.Connection[TupleRow], statement: sql.Composed | sql.SQL, first: date, batch: int
) -> int:
    removed = 0
    while True:
        with connection.transaction():
            count = connection.execute(statement, (first, batch)).rowcount
        removed += count
        if count < batch:
            return removed
