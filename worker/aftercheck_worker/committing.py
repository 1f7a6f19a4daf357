"""One connection of a worker process and its patience with a Postgres that is away (F11-F14)."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.storage import database

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 0.2
MAX_PAUSE_SECONDS: Final = 5.0

_T = TypeVar("_T")
Connect = Callable[[], psycopg.Connection[TupleRow]]


class Committer:
    """Runs transactions over one connection, opened when needed. Used by one thread at a time.

    Args:
        connect: opens a connection.
        patience: seconds to wait for Postgres before giving up.
    """

    def __init__(self, connect: Connect, patience: float) -> None:
        self._connect, self._patience = connect, patience
        self._connection: psycopg.Connection[TupleRow] | None = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def commit(self, work: Callable[[psycopg.Connection[TupleRow]], _T]) -> _T:
        """Run one transaction; wait for a Postgres that is away.

        Raises:
            DependencyUnavailable: Postgres did not answer in time.
            psycopg.Error: whatever else it says.
        """
        end = time.monotonic() + self._patience
        for pause in _pauses():
            try:
                if self._connection is None:
                    self._connection = self._opened()
                return database.transaction(self._connection, work)
            except (psycopg.Error, DependencyUnavailable) as error:
                if database.classify(error) != "unavailable":
                    raise
                self.close()
                if time.monotonic() + pause > end:
                    raise DependencyUnavailable(
                        "Postgres does not answer", why=str(error)[:200], fix="check DATABASE_URL"
                    ) from error
                logger.warning(
                    "Postgres is away, trying again in %.1f s",
                    pause,
                    extra={"action": "retry", "reason": "db_unavailable"},
                )
            time.sleep(pause)
        raise AssertionError("unreachable")

    def _opened(self) -> psycopg.Connection[TupleRow]:
        """Connect, without waiting for the disk at each commit.

        A crash of Postgres (not of a worker) may then undo the last transactions, each of them whole: the answers are
        `checking` again, and the reconciler has them evaluated again. Intake's rows are durable.
        """
        connection = self._connect()
        connection.execute("SET synchronous_commit TO off")
        connection.commit()
        return connection


def _pauses() -> Iterator[float]:
    """At once the first time (a restarted server, F13), then doubled and jittered to 50..100 %."""
    yield 0.0
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        pause = min(MAX_PAUSE_SECONDS, pause * 2)
