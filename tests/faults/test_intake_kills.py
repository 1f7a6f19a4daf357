"""Real intake processes, killed at random: every trace has one answer, and the totals say exactly that (F01, I8)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_worker.intake import Link, intakes, stream_state
from aftercheck_worker.settings import Settings
from tests.integration.intake.traffic import Traffic, intake, totals

pytestmark = pytest.mark.faults
Connection = psycopg.Connection[TupleRow]

PROGRAM = """
import logging, signal, threading
from aftercheck_worker import intake, settings
from aftercheck_worker.intake import loop
loop.CLAIM_IDLE_MS = 500
loop.LEASE_COUNT = 40
logging.basicConfig()
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
intake.run(settings.current(), stop, lambda ids, high: None)
"""
TRACES = 1_500


class Fleet:
    """Intake processes that are started again when they were killed."""

    def __init__(self, mine: Settings, size: int) -> None:
        assert mine.database_url is not None
        assert mine.redis_url is not None
        self._environ = {
            **os.environ,
            "DATABASE_URL": mine.database_url.get_secret_value(),
            "REDIS_URL": mine.redis_url.get_secret_value(),
            "AFTERCHECK_TENANT": mine.tenant,
            "AFTERCHECK_SAMPLING_RATE": "0.5",
            "AFTERCHECK_QUIET_SECONDS": "0.05",
            "AFTERCHECK_LEASE_SECONDS": "1",
        }
        self.processes = [self._start() for _ in range(size)]

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", PROGRAM], env=self._environ, start_new_session=True)

    def kill(self, place: int) -> None:
        """Kill -9 one process and start another."""
        os.killpg(self.processes[place].pid, signal.SIGKILL)
        self.processes[place].wait(10)
        self.processes[place] = self._start()

    def end(self) -> list[int]:
        """SIGTERM all; return their exit codes."""
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        return [process.wait(30) for process in self.processes]


@contextmanager
def fleet(mine: Settings, size: int = 2) -> Generator[Fleet]:
    made = Fleet(mine, size)
    try:
        yield made
    finally:
        for process in made.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)


@pytest.mark.timeout(180)
@pytest.mark.req("F01", "F02", "F27", "I3", "I7", "I8", "P10")
def test_killed_at_random(mine: Settings, traffic: Traffic, connection: Connection, redis_url: str) -> None:
    seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    print("seed", seed)  # noqa: T201 - to repeat a failed run
    rng = random.Random(seed)
    link = Link(redis_url)
    sent: dict[str, bool] = {}
    with fleet(mine) as running:
        deadline = time.monotonic() + 60
        while len(intakes(link, mine.tenant)) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for _ in range(6):
            for _ in range(TRACES // 6):
                draw = rng.random() * 0.98
                sent[traffic.trace(draw)] = draw >= 0.5
            time.sleep(rng.uniform(0.0, 0.6))
            running.kill(rng.randrange(2))
        deadline = time.monotonic() + 90
        while (state := stream_state(link, mine.tenant)).depth + state.due:
            assert time.monotonic() < deadline, state
            time.sleep(0.1)
        names = tuple(f"{process.pid}-" for process in running.processes)
        while len([name for name in intakes(link, mine.tenant) if name.startswith(names)]) < 2:
            assert time.monotonic() < deadline, "the last ones to be started must be listening for SIGTERM"
            time.sleep(0.05)
        assert running.end() == [0, 0]
    with intake(mine) as last:
        last.drain()
    link.close()

    rows = connection.execute("SELECT trace_id FROM ledger WHERE tenant = %s", (mine.tenant,)).fetchall()
    kept = {tid for tid, wanted in sent.items() if wanted}
    assert sorted(row[0] for row in rows) == sorted(kept)
    found = totals(connection, mine.tenant)
    assert found["received"] == len(sent)
    assert found["sampled"] == found["traces.answered"] == len(kept)
    assert found["unsampled"] == len(sent) - len(kept)
    assert traffic.left() == (0, 0)
