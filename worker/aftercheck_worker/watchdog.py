"""Sees a process that stands still while it looks alive (F35, I9).

Celery's time limit ends a task that hangs; nothing ends a Celery main process that is stopped, dead-locked, or holds
its only prefetch slot for ever. So the processes mark their progress in a file (`progress`), and their supervisor
looks: work waits, and the mark has not moved for longer than any task may take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from aftercheck_worker import app
from aftercheck_worker.settings import Settings

MARGIN_SECONDS: Final = 60.0
"""Beyond the time limit of a task, when AFTERCHECK_WATCHDOG_SECONDS does not say."""
START_SECONDS: Final = 180.0
"""Until its first move a process may load models, however short the patience is."""
LOOK_SECONDS: Final = 5.0
REDIS_SECONDS: Final = 1.0
UNKNOWN: Final = -1

Waiting = Callable[[], int]
"""How many messages wait; UNKNOWN when nobody can say."""


class Watchdog:
    """Looks at one process. Only its supervisor's thread uses it.

    Args:
        path: the process's mark.
        seconds: without a move for so long, while work waits, it is wedged.
        waiting: what waits for it; a process that must move anyway has always 1.
        clock: monotonic seconds.
    """

    def __init__(
        self, path: Path, seconds: float, waiting: Waiting, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.path, self._seconds, self._waiting, self._clock = path, seconds, waiting, clock
        self._seen, self._moved, self._due, self._started = 0, clock(), 0.0, False

    def reset(self) -> None:
        """Begin anew: the process was started again."""
        self._seen, self._moved, self._started = self._stamp(), self._clock(), False

    def wedged(self) -> bool:
        """Look, at most every few seconds; True when the process should be ended."""
        now = self._clock()
        if now < self._due:
            return False
        self._due = now + min(LOOK_SECONDS, self._seconds / 4)
        stamp = self._stamp()
        # Redis that does not answer is no proof of a stall, and an empty queue needs no progress.
        if stamp != self._seen or self._waiting() <= 0:
            self._started = self._started or stamp != self._seen
            self._seen, self._moved = stamp, now
        return now - self._moved > (self._seconds if self._started else max(self._seconds, START_SECONDS))

    def worker_of(self, parent: int) -> int | None:
        """Pid in the mark, if that process is a child of `parent` (Linux; elsewhere None)."""
        try:
            pid = int(self.path.read_text())
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            return pid if int(fields[1]) == parent else None
        except (OSError, ValueError, IndexError):
            return None

    def _stamp(self) -> int:
        try:
            return self.path.stat().st_mtime_ns
        except OSError:
            return 0


def seconds(settings: Settings) -> float:
    """Return the patience of the watchdog: longer than any task may take."""
    return settings.watchdog_seconds or settings.task_time_limit + MARGIN_SECONDS


def checks_waiting(settings: Settings) -> Waiting:
    """Count the messages on the check queues."""
    return _waiting(settings, (app.QUEUE_HIGH, app.QUEUE_SHADOW))


def judging_waiting(settings: Settings) -> Waiting:
    """Count the messages on the judge's queue."""
    return _waiting(settings, (app.QUEUE_JUDGE,))


def _waiting(settings: Settings, queues: Sequence[str]) -> Waiting:
    url = settings.broker_url or settings.redis_url

    def count() -> int:
        if url is None:
            return UNKNOWN
        client = redis.Redis.from_url(
            url.get_secret_value(),
            socket_timeout=REDIS_SECONDS,
            socket_connect_timeout=REDIS_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            return sum(int(client.llen(name)) for name in queues)
        except redis.RedisError:
            return UNKNOWN
        finally:
            client.close()

    return count


def always() -> int:
    """For a process that has to move even when nothing waits, such as the intake."""
    return 1
