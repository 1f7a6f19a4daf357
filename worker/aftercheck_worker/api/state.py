"""What a serving process holds: pool, stream, tokens, checker. One per application."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import psycopg
from fastapi import Request
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from aftercheck_worker import knowledge
from aftercheck_worker.api.checker import Checker
from aftercheck_worker.api.limiter import Limiter
from aftercheck_worker.api.problem import unavailable
from aftercheck_worker.api.recorder import Recorder
from aftercheck_worker.api.second_opinion import SecondOpinion
from aftercheck_worker.api.stream import Stream
from aftercheck_worker.api.tokens import TokenBook
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.retrieval import EvidenceSource
from aftercheck_worker.storage import database

POOL: Final = 8
WAIT_SECONDS: Final = 2.0
Connection = psycopg.Connection[TupleRow]


class State:
    """Services of one application. Build it, pass it to `create`, close it after.

    Args:
        settings: with both URLs.
        checker: runs the evaluator.
        tokens: who may call.

    Raises:
        ConfigurationError: the judge's settings cannot be used.
        InputError: the memory that checks refer to cannot be read.
    """

    def __init__(self, settings: Settings, checker: Checker, tokens: TokenBook) -> None:
        if settings.database_url is None or settings.redis_url is None:
            raise ValueError("State needs both URLs")
        self.settings, self.checker, self.tokens = settings, checker, tokens
        self.memory: EvidenceSource | None = (
            None if settings.api_memory is None else knowledge.load(settings.api_memory)
        )
        self.judge = SecondOpinion(settings, checker)
        self.recorder = Recorder(settings.database_url.get_secret_value(), checker.evaluator)
        self.limiter = Limiter(settings.api_rate_per_minute)
        self.stream = Stream(
            settings.redis_url.get_secret_value(),
            max_entries=settings.stream_max_entries,
            max_bytes=settings.stream_max_bytes,
        )
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            settings.database_url.get_secret_value(),
            connection_class=database.Connection,
            kwargs={
                "connect_timeout": database.CONNECT_SECONDS,
                "application_name": "aftercheck-api",
                "options": "-c statement_timeout=5000 -c timezone=UTC",
            },
            min_size=0,
            max_size=POOL,
            timeout=WAIT_SECONDS,
            open=False,
        )

    def open(self) -> None:
        """Start the pool; connects to nothing yet."""
        self._pool.open()
        self.recorder.open()

    async def leave(self) -> None:
        """Close what belongs to the event loop."""
        await self.judge.close()

    def close(self) -> None:
        """Close everything else; checks that were answered are written first."""
        self.recorder.close()
        self._pool.close(timeout=5)
        self.stream.close()
        self.checker.close()

    @contextmanager
    def postgres(self) -> Generator[Connection, None, None]:
        """Lend a connection in a transaction that commits at the end.

        Raises:
            Problem: 503 when Postgres does not answer.
        """
        try:
            with self._pool.connection() as connection:
                yield connection
        except (psycopg.Error, PoolTimeout) as error:
            if isinstance(error, PoolTimeout) or database.classify(error) in ("unavailable", "serialization"):
                raise unavailable("the store does not answer") from error
            raise


def state_of(request: Request) -> State:
    """The application's state."""
    found = request.app.state.aftercheck
    if not isinstance(found, State):
        raise TypeError("the application was not made by api.create")
    return found
