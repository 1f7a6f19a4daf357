"""`aftercheck worker`: a Celery worker and one intake, kept alive.

Celery 5.7 dies when Redis is full and does not come back by itself (F08); the supervisor restarts its children with
back-off. It holds no work: killing it loses nothing, and its children follow it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec

from aftercheck_worker import logs, watchdog
from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.roles import ALLOW_EVICTION
from aftercheck_worker.settings import Settings
from aftercheck_worker.watchdog import Watchdog

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.2
BEAT_SECONDS: Final = 2.0
STEADY_SECONDS: Final = 60.0
"""A child that ran this long starts its back-off anew."""
MAX_BACKOFF_SECONDS: Final = 15.0
GRACE_MARGIN_SECONDS: Final = 10.0
STDERR: Final = 2
"""Where children write: stdout is for data."""


class Child:
    """One supervised process and its back-off, and the watchdog that looks at it."""

    def __init__(
        self, name: str, argv: Sequence[str], environ: Mapping[str, str], watchdog: Watchdog | None = None
    ) -> None:
        self.name = name
        self._watchdog = watchdog
        self.restarts = 0
        self._argv = list(argv)
        self._environ = dict(environ)
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._failures = 0
        self._due = 0.0

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start the process."""
        self._process = subprocess.Popen(self._argv, env=self._environ, stdout=STDERR)  # noqa: S603 - our own
        self._started = time.monotonic()
        if self._watchdog is not None:
            self._watchdog.reset()

    def tend(self) -> int | None:
        """Restart the process when it is dead and its back-off is over; return its exit code when it just died."""
        now = time.monotonic()
        if self._process is None:
            if now >= self._due:
                self.restarts += 1
                self.start()
            return None
        code = self._process.poll()
        if code is None:
            return None
        self._process = None
        self._failures = 0 if now - self._started > STEADY_SECONDS else self._failures + 1
        self._due = now + backoff(self._failures)
        return code

    def end_if_wedged(self) -> bool:
        """Kill a process that stands still, and its pool child; `tend` then starts it again."""
        pid = self.pid
        if pid is None or self._watchdog is None or not self._watchdog.wedged():
            return False
        worker = self._watchdog.worker_of(pid)
        self.send(signal.SIGKILL)
        if worker is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
        return True

    def send(self, number: signal.Signals) -> None:
        """Send a signal if the process runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def forget(self) -> None:
        """Remove the mark of a process that has ended for good."""
        if self._watchdog is not None:
            self._watchdog.path.unlink(missing_ok=True)

    def wait(self, seconds: float) -> int | None:
        """Wait for the end; None when it still runs."""
        if self._process is None:
            return 0
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


def backoff(failures: int) -> float:
    """Seconds before the next start: doubled per failure in a row, capped at 15 s, jittered to 50..100 %."""
    if failures <= 0:
        return 0.0
    return min(MAX_BACKOFF_SECONDS, 0.5 * 2.0 ** (failures - 1)) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter


class Supervisor:
    """Keeps children alive until it is told to stop."""

    def __init__(self, children: Sequence[Child], *, heartbeat: Path, grace: float) -> None:
        self.children = list(children)
        self._heartbeat = heartbeat
        self._grace = grace
        self._stop = threading.Event()
        self._signals = 0

    def run(self) -> int:
        """Return 0 after a clean stop, 78 when a child says that its configuration cannot work, 1 when killed."""
        for child in self.children:
            child.start()
        beat, code = 0.0, 0
        while not self._stop.wait(POLL_SECONDS):
            code = self._tend()
            if code:
                break
            if time.monotonic() - beat >= BEAT_SECONDS:
                beat = time.monotonic()
                self._beat()
        return max(code, self._drain())

    def stop(self) -> None:
        """Ask for the end; a second call ends the children at once."""
        self._signals += 1
        self._stop.set()
        if self._signals > 1:
            for child in self.children:
                child.send(signal.SIGKILL)

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Signal handler: as `stop`."""
        _ = number, frame
        self.stop()

    def _tend(self) -> int:
        for child in self.children:
            if child.end_if_wedged():
                logger.error(
                    "%s stands still while work waits; it is killed", child.name, extra={"action": "child_wedged"}
                )
            code = child.tend()
            if code == ConfigurationError.exit_code:
                logger.error("%s cannot run with this configuration", child.name, extra={"action": "child_refused"})
                return ConfigurationError.exit_code
            if code is not None:
                logger.warning(
                    "%s ended with %d; it will be started again", child.name, code, extra={"action": "child_ended"}
                )
        return 0

    def _drain(self) -> int:
        for child in self.children:
            child.send(signal.SIGTERM)
        deadline, killed = time.monotonic() + self._grace, False
        for child in self.children:
            if child.wait(max(0.1, deadline - time.monotonic())) is None:
                child.send(signal.SIGKILL)
                child.wait(5)
                killed = True
        self._heartbeat.unlink(missing_ok=True)
        for child in self.children:
            child.forget()
        return 1 if killed or self._signals > 1 else 0

    def _beat(self) -> None:
        """Write the liveness file: stale means that the supervisor itself is gone or stuck."""
        state = {
            "pid": os.getpid(),
            "at": time.time(),
            "children": {child.name: {"pid": child.pid, "restarts": child.restarts} for child in self.children},
        }
        part = self._heartbeat.with_suffix(".new")
        try:
            part.write_bytes(msgspec.json.encode(state))
            part.rename(self._heartbeat)
        except OSError as error:
            logger.warning("No heartbeat written: %s", error, extra={"action": "heartbeat_failed"})


def role(name: str, *arguments: str) -> list[str]:
    """Command line of a role."""
    return [sys.executable, "-m", "aftercheck_worker.roles", name, *arguments]


def _watched(name: str, settings: Settings, environ: Mapping[str, str], waiting: watchdog.Waiting) -> Child:
    mark = (settings.home / f"{name}-{os.getpid()}.progress").resolve()
    mark.unlink(missing_ok=True)
    looking = Watchdog(mark, watchdog.seconds(settings), waiting)
    return Child(name, role(name), {**environ, "AFTERCHECK_PROGRESS_FILE": str(mark)}, looking)


def run(
    settings: Settings,
    *,
    intake: bool = True,
    allow_eviction: bool = False,
    environ: Mapping[str, str] | None = None,
    install: Callable[[Supervisor], None] | None = None,
) -> int:
    """Run a Celery worker, a second one for the judge, and an intake, until SIGTERM or SIGINT; return the exit code.

    Args:
        settings: of this process; the children read the same from `environ`.
        intake: supervise one intake child too.
        allow_eviction: accept a Redis that may evict keys.
        environ: environment of the children, `os.environ` by default; holds the addresses of embedded services.
        install: called with the supervisor instead of installing signal handlers, for other hosts than a process.
    """
    logs.configure(settings)
    environ = dict(os.environ if environ is None else environ)
    flags = [ALLOW_EVICTION] if allow_eviction else []
    preflight = subprocess.run(role("preflight", *flags), env=environ, stdout=STDERR, check=False)  # noqa: S603 - our own
    if preflight.returncode:
        return preflight.returncode
    settings.home.mkdir(parents=True, exist_ok=True)
    children = [_watched("celery", settings, environ, watchdog.checks_waiting(settings))]
    if settings.judge_url is not None:
        children.append(_watched("judge", settings, environ, watchdog.judging_waiting(settings)))
    if intake:
        children.append(_watched("intake", settings, environ, watchdog.always))
    supervisor = Supervisor(
        children,
        heartbeat=settings.heartbeat_file or settings.home / f"worker-{os.getpid()}.heartbeat",
        grace=settings.task_time_limit + GRACE_MARGIN_SECONDS,
    )
    if install is not None:
        install(supervisor)
    else:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, supervisor.handle)
    return supervisor.run()
