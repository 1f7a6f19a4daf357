"""What intake writes to Postgres: answers, dead letters, feedback and counters, each batch in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.intake.postgres import Postgres
from aftercheck_worker.intake.reading import Letter, Reader, Reading
from aftercheck_worker.storage import database, dead_letters, feedback, increments, ledger, totals
from aftercheck_worker.storage.totals import TotalKey

Connection = psycopg.Connection[TupleRow]
CLOCK_SKEW_S: Final = 30.0
"""Half of the time for which a read trace is remembered; the clocks of Redis and Postgres differ by less."""


class Ready(msgspec.Struct, frozen=True):
    """An answer that waits for a worker. `pairs` is its estimated work."""

    evaluation_id: int
    priority: int
    pairs: int


class Stored(msgspec.Struct, frozen=True):
    """A reading after its commit.

    Attributes:
        new: an answer of it is new in the ledger, or replaced a pending one.
        known: its answers were in the ledger before its first chunk came.
        ready: answers to send.
    """

    reading: Reading
    new: bool = False
    known: bool = False
    ready: tuple[Ready, ...] = ()


class Writer:
    """Writes for one tenant."""

    def __init__(self, postgres: Postgres, tenant: str, reader: Reader) -> None:
        self._postgres, self._tenant, self._reader = postgres, tenant, reader

    def store(self, readings: Sequence[Reading]) -> list[Stored]:
        """Write readings in one transaction; data that Postgres refuses is narrowed down and becomes dead letters.

        Raises:
            Unavailable: Postgres does not answer. What was committed is found again by its keys.
        """
        if not readings:
            return []
        try:
            return self._postgres.transaction(lambda connection: self._store(connection, readings))
        except (psycopg.Error, UnicodeError) as error:
            if database.classify(error) != "invalid":
                raise
            detail = f"Postgres refused it: {type(error).__name__}"
        if len(readings) > 1:
            middle = len(readings) // 2
            return self.store(readings[:middle]) + self.store(readings[middle:])
        return self.store([self._reader.refused(readings[0], "invalid_schema", detail)])

    def letters(self, letters: Sequence[Letter]) -> None:
        """Write dead letters.

        Raises:
            Unavailable: Postgres does not answer.
        """
        if letters:
            self._postgres.transaction(lambda connection: self._letters(connection, letters))

    def feedback(self, words: Sequence[feedback.Feedback]) -> None:
        """Write feedback.

        Raises:
            Unavailable: Postgres does not answer.
        """

        def write(connection: Connection) -> None:
            for word in words:
                feedback.put(connection, self._tenant, word)

        if words:
            self._postgres.transaction(write)

    def judged(self, trace_ids: Sequence[str]) -> set[str]:
        """Which of the traces have answers in the ledger.

        Raises:
            Unavailable: Postgres does not answer.
        """

        def ask(connection: Connection) -> set[str]:
            found = connection.execute(
                "SELECT DISTINCT trace_id FROM ledger WHERE tenant = %s AND trace_id = ANY(%s)",
                (self._tenant, list(trace_ids)),
            )
            return {str(row[0]) for row in found.fetchall()}

        return self._postgres.transaction(ask) if trace_ids else set()

    def add(self, stamp: int, counted: Mapping[tuple[str, str, str], int]) -> None:
        """Move counters (see `counters.flush`).

        Raises:
            Unavailable: Postgres does not answer.
        """
        self._postgres.transaction(lambda connection: increments.add_once(connection, self._tenant, stamp, counted))

    def _store(self, connection: Connection, readings: Sequence[Reading]) -> list[Stored]:
        self._letters(connection, [letter for reading in readings for letter in reading.letters])
        answers = [answer for reading in readings for answer in reading.answers]
        written = {(row.trace_id, row.span_id): row for row in ledger.insert(connection, answers)}
        kept = {answer.trace_id for answer in answers if (answer.trace_id, answer.span_id) not in written}
        if not kept:
            return [_stored(reading, written, known=False) for reading in readings]
        old = self._old(connection, [reading for reading in readings if reading.trace.trace_id in kept])
        again = [a for a in answers if (a.trace_id, a.span_id) not in written and a.trace_id not in old]
        written |= {(row.trace_id, row.span_id): row for row in ledger.replace_pending(connection, again)}
        return [_stored(reading, written, known=reading.trace.trace_id in old) for reading in readings]

    def _old(self, connection: Connection, readings: Sequence[Reading]) -> set[str]:
        """Traces whose answers are older than what was read: sent a second time, long after we had forgotten them.

        Younger rows are from our own reading: late chunks, or an intake that was killed before it settled.
        """
        first = {r.trace.trace_id: r.trace.first for r in readings if not r.trace.decision}
        found = connection.execute(
            "SELECT trace_id, max(extract(epoch FROM created_at))::float8 FROM ledger"
            " WHERE tenant = %s AND trace_id = ANY(%s) GROUP BY trace_id",
            (self._tenant, list(first)),
        ).fetchall()
        return {str(row[0]) for row in found if float(row[1]) < first[str(row[0])] - CLOCK_SKEW_S}

    def _letters(self, connection: Connection, letters: Sequence[Letter]) -> None:
        counts: Counter[TotalKey] = Counter()
        for letter in letters:
            fields = {
                name.decode("utf-8", "replace")[:100]: value.decode("utf-8", "replace")[:1000]
                for name, value in letter.fields.items()
                if name != b"p"
            }
            added = dead_letters.add_entry(
                connection,
                self._tenant,
                letter.entry_id,
                letter.reason,
                detail=letter.detail,
                trace_id=letter.trace_id,
                app=letter.app,
                fields=dict(list(fields.items())[:100]),
                payload=letter.fields.get(b"p", b""),
            )
            if added is not None:
                counts[TotalKey(totals.DEAD_LETTERS, app=letter.app, key=letter.reason)] += 1
        totals.add(connection, self._tenant, counts)


def _stored(reading: Reading, written: Mapping[tuple[str, str], ledger.Inserted], *, known: bool) -> Stored:
    rows = [(answer, written.get((answer.trace_id, answer.span_id))) for answer in reading.answers]
    ready = tuple(
        Ready(row.evaluation_id, answer.priority, answer.pairs)
        for answer, row in rows
        if row is not None and row.state == "pending"
    )
    return Stored(reading, new=any(row is not None for _, row in rows), known=known, ready=ready)


def batches(ready: Sequence[Ready], *, most: int, pairs: int) -> list[tuple[bool, list[int]]]:
    """Cut answers into messages: (high priority, ids), at most `most` ids and about `pairs` estimated pairs each."""
    cut: list[tuple[bool, list[int]]] = []
    for high in (True, False):
        ids: list[int] = []
        load = 0
        for one in ready:
            if (one.priority > 0) != high:
                continue
            if ids and (len(ids) >= most or load + one.pairs > pairs):
                cut.append((high, ids))
                ids, load = [], 0
            ids.append(one.evaluation_id)
            load += one.pairs
        if ids:
            cut.append((high, ids))
    return cut
