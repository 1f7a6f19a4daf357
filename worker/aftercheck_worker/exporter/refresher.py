"""The 5 s timer: reads both stores with short timeouts, renders the page, tells the health watch."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
import psycopg
import redis
from psycopg.rows import TupleRow

from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.exporter import queues, store
from aftercheck_worker.exporter.exposition import ReadingCollector, render
from aftercheck_worker.exporter.health import Health, Progress, Watch
from aftercheck_worker.exporter.patterns import Patterns
from aftercheck_worker.exporter.reading import QueueReading, Reading, StoreReading
from aftercheck_worker.exporter.server import Page
from aftercheck_worker.storage import database

_T = TypeVar("_T")
logger = logging.getLogger(__name__)

MIN_PAUSE: Final = 0.05


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Where to read: URLs with their passwords."""

    database_url: str
    redis_url: str
    broker_url: str
    tenant: str


class Refresher:
    """Owns the two connections. Only `run` (one thread) touches them; the other methods read finished values."""

    def __init__(
        self,
        source: Source,
        *,
        seconds: float,
        stall_seconds: float,
        label_values: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._source, self._seconds, self._clock = source, seconds, clock
        self._collector = ReadingCollector(label_values)
        self._watch = Watch(now=clock(), refresh_seconds=seconds, stall_seconds=stall_seconds)
        self._page = Page.of(b"")
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._queues = queues.Reader(source.redis_url, source.broker_url, source.tenant)
        self._reported: dict[str, str] = {}
        self.patterns = Patterns(source.database_url, source.tenant)

    def page(self) -> Page:
        """Return the newest scrape."""
        return self._page

    def live(self) -> Health:
        """Answer of /livez."""
        return self._watch.live(self._clock())

    def ready(self) -> Health:
        """Answer of /readyz."""
        return self._watch.ready(self._clock())

    def run(self, stop: threading.Event) -> None:
        """Refresh until `stop` is set."""
        try:
            while not stop.is_set():
                began = self._clock()
                self.refresh()
                stop.wait(max(MIN_PAUSE, self._seconds - (self._clock() - began)))
        finally:
            self.close()

    def close(self) -> None:
        """Close the connections."""
        self._drop_connection()
        self._queues.close()

    def refresh(self) -> None:
        """Read once. A store that does not answer leaves the page; nothing old is shown in its place."""
        began = self._clock()
        found, why_store = self._read("postgres", self._read_store)
        waiting, why_queues = self._read("redis", self._queues.read)
        reading = Reading(at=time.time(), seconds=self._clock() - began, store=found, queues=waiting)
        self._collector.show(reading)
        self._page = Page.of(render(self._collector))
        lost = tuple(why for why in (why_store, why_queues) if why)
        self._watch.refreshed(self._clock(), _progress(found, waiting), lost)

    def _read(self, name: str, read: Callable[[], _T]) -> tuple[_T | None, str]:
        try:
            value = read()
        except (psycopg.Error, redis.RedisError, DependencyUnavailable, OSError) as error:
            why = f"{name} does not answer: {type(error).__name__}"
            if self._reported.get(name) != why:
                logger.warning(
                    "%s; its series are absent", why, extra={"action": "dependency_lost", "dependency": name}
                )
            self._reported[name] = why
            if name == "postgres":
                self._drop_connection()
            return None, why
        if self._reported.pop(name, None):
            logger.warning("%s answers again", name, extra={"action": "dependency_back", "dependency": name})
        return value, ""

    def _read_store(self) -> StoreReading:
        if self._connection is None or self._connection.closed:
            self._connection = database.connect(
                self._source.database_url, name="exporter", statement_timeout=store.STATEMENT_SECONDS
            )
            self._connection.autocommit = True
        found = store.read(self._connection, self._source.tenant)
        return msgspec.structs.replace(found, fatigue=self.patterns.latest())

    def _drop_connection(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
        self._connection = None


def _progress(found: StoreReading | None, waiting: QueueReading | None) -> Progress | None:
    """Return None when either store is silent: then nobody can say whether the fleet moves."""
    if found is None or waiting is None:
        return None
    depth = sum(queue.depth for queue in waiting.queues) + sum(found.in_flight.values())
    mark = (str(found.last_finalised), found.last_change, *waiting.mark)
    return Progress(waiting=depth, mark=mark)
