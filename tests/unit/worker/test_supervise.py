"""The supervisor with real, tiny children."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from aftercheck_worker import supervise
from aftercheck_worker.supervise import Child, Supervisor

FOREVER = (
    "import time, signal, sys; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True); time.sleep(60)"
)
DEAF = "import time, signal; signal.signal(15, signal.SIG_IGN); time.sleep(60)"


def child(code: str, name: str = "child") -> Child:
    return Child(name, [sys.executable, "-c", code], os.environ)


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


class Running:
    """A supervisor in a thread."""

    def __init__(self, folder: Path, *children: Child, grace: float = 10) -> None:
        self.heartbeat = folder / "beat"
        self.supervisor = Supervisor(children, heartbeat=self.heartbeat, grace=grace)
        self.code: int | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.code = self.supervisor.run()

    def end(self) -> int | None:
        self.supervisor.stop()
        return self.join()

    def join(self) -> int | None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.code


def test_a_dead_child_is_started_again_and_the_heartbeat_says_so(tmp_path: Path) -> None:
    first = child(FOREVER)
    running = Running(tmp_path, first, child(FOREVER, "other"))
    try:
        until(lambda: first.pid is not None)
        before = first.pid
        assert before is not None
        os.kill(before, signal.SIGKILL)
        until(lambda: first.pid not in (None, before))
        until(lambda: running.heartbeat.exists() and beat(running)["child"]["restarts"] == 1)
        assert beat(running)["other"]["restarts"] == 0
    finally:
        code = running.end()

    assert code == 0
    assert not running.heartbeat.exists()


def beat(running: Running) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = json.loads(running.heartbeat.read_text())["children"]
    return found


def test_a_configuration_error_of_a_child_ends_everything_with_78(tmp_path: Path) -> None:
    other = child(FOREVER)

    assert Running(tmp_path, other, child("raise SystemExit(78)")).join() == 78
    assert other.pid is None


def test_a_child_that_does_not_drain_is_killed_and_the_exit_code_says_so(tmp_path: Path) -> None:
    deaf = child(DEAF)
    running = Running(tmp_path, deaf, grace=0.3)
    until(lambda: deaf.pid is not None)
    time.sleep(0.3)  # the child has to install its handler first

    assert running.end() == 1
    assert deaf.pid is None


@pytest.mark.req("F03")
def test_a_second_stop_kills_at_once(tmp_path: Path) -> None:
    deaf = child(DEAF)
    running = Running(tmp_path, deaf, grace=60)
    until(lambda: deaf.pid is not None)

    running.supervisor.stop()

    assert running.end() == 1


def test_back_off_grows_and_is_bounded() -> None:
    pauses = [[supervise.backoff(n) for _ in range(50)] for n in range(12)]

    assert max(pauses[0]) == 0
    assert all(0.25 <= pause <= 0.5 for pause in pauses[1])
    assert all(supervise.MAX_BACKOFF_SECONDS / 2 <= pause <= supervise.MAX_BACKOFF_SECONDS for pause in pauses[11])
