"""Real worker processes on real services: started, killed by group, and looked at through Postgres."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import LiteralString, Self

import msgspec
import psycopg
import redis
from psycopg.rows import TupleRow
from redis.backoff import NoBackoff
from redis.retry import Retry

from aftercheck_schemas import Interaction
from aftercheck_schemas.vocabulary import TERMINAL_STATES
from aftercheck_worker.embedded import binaries, identity
from aftercheck_worker.embedded.valkey import Valkey
from aftercheck_worker.storage import database, ledger

ROOT = Path(__file__).parents[2]
Connection = psycopg.Connection[TupleRow]


class Broker:
    """A Valkey of the test's own, on a port that stays, so that it can be killed and started again."""

    def __init__(self, home: Path, *, fsync_always: bool = False) -> None:
        self._always = fsync_always
        who = identity.choose(home, binaries.find())
        first = Valkey(who)
        first.launch()
        first.wait()
        self.url = first.url
        first.stop()
        self._server = Valkey(who, port=int(self.url.rpartition(":")[2].partition("/")[0]))

    def start(self) -> None:
        """Start it; its append-only file is read back."""
        self._server.launch()
        self._server.wait()
        if self._always:  # a SIGKILL then loses nothing that was acknowledged (I2)
            with self.client() as client:
                client.config_set("appendfsync", "always")

    def stop(self) -> None:
        """Stop it cleanly."""
        self._server.stop()

    def restart(self, *, kill: bool, down: float = 0.0) -> None:
        """Take it down by SIGKILL or SIGTERM, and bring it back `down` seconds later."""
        if kill:
            os.kill(self._server.pid, signal.SIGKILL)
        self._server.stop()
        time.sleep(down)
        self.start()

    @contextlib.contextmanager
    def client(self) -> Generator[redis.Redis]:
        """A client that fails fast."""
        with redis.Redis.from_url(
            self.url, socket_timeout=3, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0)
        ) as opened:
            yield opened


class Fleet:
    """Process groups with one environment. Leaving the context kills what still runs."""

    def __init__(self, environ: Mapping[str, str], logs: Path) -> None:
        self.environ = {name: value for name, value in os.environ.items() if not name.startswith("AFTERCHECK_")}
        self.environ |= {"PYTHONPATH": str(ROOT), **environ}
        self._logs = logs
        self._running: list[subprocess.Popen[bytes]] = []
        self._started = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[bytes]:
        """Start `aftercheck ARGUMENTS` as the leader of a new process group."""
        self._started += 1
        with (self._logs / f"{self._started}-{arguments[0]}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "aftercheck_worker.cli", *arguments],
                env=self.environ | environ,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill -9 the whole group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._running.remove(process)

    def log(self) -> str:
        """All that the processes wrote, for the message of a failed assertion."""
        return "\n".join(
            f"== {p.name}\n{p.read_text('utf-8', 'replace')[-3000:]}" for p in sorted(self._logs.iterdir())
        )


def until(condition: Callable[[], bool], seconds: float, what: str, log: Callable[[], str] = str) -> None:
    """Wait for `condition`, looking every 0.1 s; fail with `what` and the logs after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what}\n{log()}")
        time.sleep(0.1)


def add(connection: Connection, interactions: Sequence[Interaction]) -> list[int]:
    """Write answers to the ledger, as intake does; return their ids."""
    answers = [
        ledger.NewAnswer(
            tenant="default", trace_id=i.trace_id, span_id=i.span_id, app=i.app, body=msgspec.json.encode(i)
        )
        for i in interactions
    ]
    found = database.transaction(connection, lambda c: ledger.insert(c, answers))
    by_trace = {row.trace_id: row.evaluation_id for row in found}
    return [by_trace[i.trace_id] for i in interactions]


def states(connection: Connection, ids: Sequence[int]) -> list[tuple[str, str | None]]:
    """State and reason of each answer, in the order of `ids`."""
    rows = connection.execute(
        "SELECT evaluation_id, state, reason FROM ledger WHERE evaluation_id = ANY(%s)", (list(ids),)
    ).fetchall()
    known = {row[0]: (row[1], row[2]) for row in rows}
    return [known[number] for number in ids]


def finished(connection: Connection, ids: Sequence[int]) -> bool:
    """Are all answers in a terminal state?"""
    return all(state in TERMINAL_STATES for state, _ in states(connection, ids))


def number(connection: Connection, query: LiteralString, *values: object) -> float:
    """The one number that a query returns."""
    row = connection.execute(query, values).fetchone()
    assert row is not None
    return float(row[0] or 0)
