"""The watchdog ends what stands still while work waits, and nothing else (F35)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from aftercheck_worker import watchdog
from aftercheck_worker.progress import Mark
from aftercheck_worker.settings import load
from aftercheck_worker.supervise import Child, Supervisor
from aftercheck_worker.watchdog import Watchdog

SECONDS = 60.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Case:
    """A watchdog whose clock, queue and mark the test moves."""

    def __init__(self, folder: Path) -> None:
        self.clock, self.waiting, self.path = Clock(), 5, folder / "mark"
        self.dog = Watchdog(self.path, SECONDS, lambda: self.waiting, clock=self.clock)

    def looks(self, count: int, step: float = 10.0) -> list[bool]:
        found: list[bool] = []
        for _ in range(count):
            self.clock.now += step
            found.append(self.dog.wedged())
        return found

    def move(self) -> None:
        self.path.touch()
        os.utime(self.path, ns=(0, time.time_ns() + int(self.clock.now * 1e9)))


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


@pytest.mark.req("F35")
def test_no_move_while_work_waits_is_wedged_after_the_patience(case: Case) -> None:
    case.move()
    case.looks(1)

    assert case.looks(6) == [False] * 6
    assert case.looks(1) == [True]


def test_a_process_that_never_moved_is_wedged_too_but_may_load_its_models(case: Case) -> None:
    patient = round(watchdog.START_SECONDS / 10)
    assert case.looks(patient) == [False] * patient
    assert case.looks(1) == [True]


def test_a_move_an_empty_queue_and_a_silent_redis_are_no_stall(case: Case) -> None:
    for _ in range(20):
        case.move()
        assert case.looks(1) == [False]
    case.waiting = 0
    assert case.looks(20) == [False] * 20
    case.waiting = watchdog.UNKNOWN
    assert case.looks(20) == [False] * 20
    case.waiting = 5
    assert case.looks(7) == [False] * 6 + [True]  # from the last look at which nothing waited


def test_a_fresh_start_gets_the_whole_patience(case: Case) -> None:
    case.move()
    assert case.looks(8)[-1]
    case.dog.reset()
    patient = round(watchdog.START_SECONDS / 10)
    assert case.looks(patient) == [False] * patient
    case.move()
    assert case.looks(8) == [False] * 7 + [True]


def test_the_patience_is_longer_than_any_task() -> None:
    assert watchdog.seconds(load({})) > load({}).task_time_limit
    assert watchdog.seconds(load({"AFTERCHECK_WATCHDOG_SECONDS": "7"})) == 7


def test_the_mark_survives_its_folder_and_its_removal(tmp_path: Path) -> None:
    mark = Mark(tmp_path / "mark")
    mark.moved()
    assert (tmp_path / "mark").read_text() == str(os.getpid())
    before = (tmp_path / "mark").stat().st_mtime_ns
    mark.moved()
    assert (tmp_path / "mark").stat().st_mtime_ns > before
    Mark(tmp_path / "no" / "folder").moved()
    Mark(None).moved()


def test_only_a_child_of_the_process_is_its_worker(tmp_path: Path) -> None:
    dog = Watchdog(tmp_path / "mark", SECONDS, watchdog.always)
    assert dog.worker_of(os.getpid()) is None
    Mark(dog.path).born()
    assert dog.worker_of(os.getppid()) == os.getpid()
    assert dog.worker_of(1 if os.getppid() != 1 else 2) is None
    dog.path.write_text("not a pid")
    assert dog.worker_of(os.getppid()) is None


@pytest.mark.req("F35")
def test_a_stopped_process_is_killed_and_started_again(tmp_path: Path) -> None:
    """A real process, really stopped by SIGSTOP: it neither moves nor dies by itself."""
    mark = tmp_path / "mark"
    code = "import os, sys, time\nwhile True:\n open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(0.05)"
    child = Child("child", [sys.executable, "-c", code, str(mark)], os.environ, Watchdog(mark, 1.0, watchdog.always))
    supervisor = Supervisor([child], heartbeat=tmp_path / "beat", grace=10)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    try:
        first = await_pid(mark, None)
        os.kill(first, signal.SIGSTOP)
        assert await_pid(mark, first) != first
        assert child.restarts == 1
    finally:
        supervisor.stop()
        thread.join(30)
    assert not mark.exists()


def await_pid(mark: Path, other: int | None) -> int:
    end = time.monotonic() + 30
    while True:
        text = mark.read_text() if mark.exists() else ""
        if text.isdigit() and int(text) != other:
            return int(text)
        assert time.monotonic() < end, "no other process came"
        time.sleep(0.02)


def test_children_write_nothing_to_stdout(tmp_path: Path) -> None:
    """Stdout is for data: what a supervised process prints goes to stderr."""
    code = (
        "from aftercheck_worker.supervise import Child\nimport os, sys\n"
        "child = Child('x', [sys.executable, '-c', \"print('banner')\"], os.environ)\nchild.start()\nchild.wait(20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, "banner" in done.stderr) == ("", True)
