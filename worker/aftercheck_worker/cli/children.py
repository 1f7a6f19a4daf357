"""Processes that a command starts and takes down with it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Self

from aftercheck_worker.errors import AftercheckError

GRACE_SECONDS = 20.0
STDERR = 2
"""Where children write without a log: stdout is for data."""


class ChildEnded(AftercheckError):
    """A process that should run has ended."""


class Children:
    """Starts commands of our own and stops them in reverse order, however the caller leaves.

    Each child leads a session of its own: Ctrl-C reaches the caller alone, which then ends them one after another.

    Args:
        environ: environment of all children.
        logs: folder of their logs; None lets them write to our stderr.
    """

    def __init__(self, environ: Mapping[str, str], logs: Path | None) -> None:
        self._environ, self._logs = dict(environ), logs
        self._running: list[tuple[str, subprocess.Popen[bytes], Path | None]] = []
        self._files: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, name: str, *arguments: str) -> None:
        """Start `aftercheck NAME ARGUMENTS`."""
        self.launch(name, [sys.executable, "-m", "aftercheck_worker.cli", name, *arguments])

    def launch(self, name: str, argv: Sequence[str]) -> None:
        """Start any program."""
        log: Path | None = None
        target: IO[bytes] | int = STDERR
        if self._logs is not None:
            self._logs.mkdir(parents=True, exist_ok=True)
            log = self._logs / f"{name}.log"
            target = log.open("wb")
            self._files.append(target)
        process = subprocess.Popen(  # noqa: S603 - our own commands
            argv,
            env=self._environ,
            stdin=subprocess.DEVNULL,
            stdout=target,
            stderr=target,
            start_new_session=True,
        )
        self._running.append((name, process, log))

    def check(self) -> None:
        """Raise when a child has ended.

        Raises:
            ChildEnded: with the last line that it wrote.
        """
        for name, process, log in self._running:
            code = process.poll()
            if code is not None:
                raise ChildEnded(
                    f"aftercheck {name} ended with {code}",
                    why=_last_line(log),
                    fix=f"see {log}" if log else "see its messages above",
                )

    def stop(self) -> None:
        """End all children, the last started one first."""
        for _, process, _ in reversed(self._running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for _, process, _ in reversed(self._running):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            if process.poll() is None:
                process.kill()
                process.wait()
        self._running.clear()
        for file in self._files:
            file.close()


def _last_line(log: Path | None) -> str:
    if log is None:
        return ""
    lines = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "it wrote nothing"
