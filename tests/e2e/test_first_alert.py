"""docs/how-to/first-alert.md, executed: a page comes and goes. About ten minutes, so it is `slow`."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/first-alert.md").read_text()
COMMANDS = re.findall(r"```sh terminal=(\d)\n(.+?)\n```", PAGE)
PROGRAMS = {
    ".venv/bin/aftercheck": [sys.executable, "-m", "aftercheck_worker.cli"],
    ".venv/bin/python": [sys.executable],
}


def command(line: str, *more: str) -> list[str]:
    """A line of the page with this test's interpreter, and addresses that are free here."""
    program, *arguments = shlex.split(line)
    return [*PROGRAMS[program], *arguments, *more]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Terminal:
    """A running command whose output can be waited for."""

    def __init__(self, argv: list[str], environ: dict[str, str]) -> None:
        self.lines: list[str] = []
        self._new = threading.Condition()
        self.process = subprocess.Popen(
            argv, env=environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._new:
                self.lines.append(line.rstrip())
                self._new.notify_all()

    def close(self) -> None:
        """Read the rest and close the pipe."""
        self._reader.join(20)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def wait(self, pattern: str, seconds: float) -> re.Match[str]:
        """The first line that matches."""
        deadline = time.monotonic() + seconds
        with self._new:
            while True:
                for line in self.lines:
                    if match := re.search(pattern, line):
                        return match
                left = deadline - time.monotonic()
                assert left > 0, f"no {pattern!r} in time:\n" + "\n".join(self.lines[-40:])
                assert self.process.poll() is None, "it ended:\n" + "\n".join(self.lines[-40:])
                self._new.wait(min(left, 1))


@contextmanager
def terminal(argv: list[str], environ: dict[str, str]) -> Generator[Terminal]:
    found = Terminal(argv, environ)
    try:
        yield found
    finally:
        found.process.terminate()
        found.process.wait(60)
        found.close()


def ready(url: str, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urlopen(url, timeout=5):
                return
        except OSError:
            assert time.monotonic() < deadline, f"{url} does not answer"
            time.sleep(0.5)


def test_the_page_has_its_three_terminals() -> None:
    assert [number for number, _ in COMMANDS] == ["1", "2", "3"]
    assert all(shlex.split(line)[0] in PROGRAMS for _, line in COMMANDS)


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.timeout(1500)
@pytest.mark.req("R27", "U42")
def test_a_newcomer_sees_a_page_come_and_go(tmp_path: Path) -> None:
    up, monitor, drill = (line for _, line in COMMANDS)
    exporter, page = free_port(), free_port()
    environ = {
        **os.environ,
        "AFTERCHECK_HOME": str(tmp_path / "home"),
        "AFTERCHECK_EXPORTER_PORT": str(exporter),
        "AFTERCHECK_API_PORT": str(page),
        "AFTERCHECK_LOG_FORMAT": "text",
    }
    addresses = ["--exporter", f"127.0.0.1:{exporter}", "--home", str(tmp_path / "monitor")]
    addresses += ["--prometheus-port", str(free_port()), "--alertmanager-port", str(free_port())]
    with ExitStack() as stack:
        stack.enter_context(terminal(command(up), environ))
        ready(f"http://127.0.0.1:{exporter}/readyz")
        ready(f"http://127.0.0.1:{page}/livez")
        second = stack.enter_context(terminal(command(monitor, *addresses), environ))
        second.wait("Ctrl-C stops both", 90)
        began = time.monotonic()
        third = stack.enter_context(terminal(command(drill), environ))
        fired = second.wait(r"PAGERDUTY trigger  critical FaithfulnessLow drill, dedup_key (\w+)", 300)
        print(f"page after {time.monotonic() - began:.0f} s")  # noqa: T201
        link = second.wait(r"Traces: http://localhost:8080(/\S+)", 30)
        ready(f"http://127.0.0.1:{page}{link[1]}")
        third.wait("well again", 200)
        mended = time.monotonic()
        second.wait(rf"PAGERDUTY resolve .*dedup_key {fired[1]}", 900)
        print(f"resolved {time.monotonic() - mended:.0f} s after the app was well again")  # noqa: T201
        text = "\n".join(second.lines)
        print(text)  # noqa: T201
        assert "refused" not in text
        assert "CriticalUnsupportedClaim" not in text
        assert "EvaluationStalled" not in text
