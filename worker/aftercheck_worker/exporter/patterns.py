"""The fatigue slopes, read by a slow timer of their own: they look at days, and cost more than all the rest.

A thread beside the refresher's: a second of arithmetic must not delay the refresh that says whether the fleet lives.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

import psycopg

from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.exporter import store
from aftercheck_worker.exporter.reading import Fatigue
from aftercheck_worker.storage import database

logger = logging.getLogger(__name__)

SECONDS: Final = 600.0
RETRY_SECONDS: Final = 60.0


class Patterns:
    """Holds the newest slopes. `run` belongs to one thread; `latest` may be asked from any."""

    def __init__(self, database_url: str, tenant: str) -> None:
        self._url, self._tenant = database_url, tenant
        self._latest = Fatigue()

    def latest(self) -> Fatigue:
        """Return what was read last; nothing before the first reading and after one that failed."""
        return self._latest

    def read(self) -> bool:
        """Read once over a connection of its own; return whether Postgres answered in time."""
        try:
            with database.connect(self._url, name="exporter", statement_timeout=store.STATEMENT_SECONDS) as found:
                self._latest = store.read_fatigue(found, self._tenant)
        except (psycopg.Error, DependencyUnavailable) as error:
            self._latest = Fatigue()
            logger.warning(
                "The fatigue slopes are absent: %s", type(error).__name__, extra={"action": "fatigue_unread"}
            )
            return False
        return True

    def run(self, stop: threading.Event) -> None:
        """Read every ten minutes until `stop` is set; after a failure sooner."""
        while not stop.is_set():
            stop.wait(SECONDS if self.read() else RETRY_SECONDS)
