"""The intake's one connection to Postgres, opened when needed and forgotten when it breaks."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.storage import database

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 5.0


class Unavailable(Exception):
    """Postgres cannot be used now; try again later."""


class Postgres:
    """Runs transactions. After a failure it refuses at once until a pause is over, so that reading goes on."""

    def __init__(self, url: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url, self._clock = url, clock
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._pause, self._until = 0.0, 0.0

    @property
    def pausing(self) -> bool:
        """True while a failure is too fresh to try again."""
        return self._clock() < self._until

    def transaction(self, work: Callable[[psycopg.Connection[TupleRow]], _T]) -> _T:
        """Run `work` in one transaction and commit.

        Raises:
            Unavailable: no connection, or it broke; nothing is known about the commit.
            psycopg.Error: Postgres refused the data or the statement; rolled back.
            UnicodeEncodeError: text that cannot be sent; rolled back.
        """
        if self.pausing:
            raise Unavailable("Postgres failed a moment ago")
        try:
            if self._connection is None or self._connection.closed:
                self._connection = database.connect(self._url, name="intake")
            result = database.transaction(self._connection, work)
        except (psycopg.Error, DependencyUnavailable) as error:
            if database.classify(error) not in ("unavailable", "serialization"):
                raise
            self._failed(error)
            raise Unavailable(str(error)[:300]) from error
        self._pause = 0.0
        return result

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _failed(self, error: Exception) -> None:
        if self._pause == 0.0:
            logger.warning("Postgres does not answer: %s", str(error)[:300], extra={"action": "postgres_lost"})
        self.close()
        # A backend that was terminated (F13) deserves one try at once.
        self._pause = min(LONGEST_PAUSE_S, self._pause * 2 or FIRST_PAUSE_S)
        self._until = self._clock() + self._pause
