"""Chaos: 6,000 traces, 2 workers, 2 intakes, random kill -9, 3 restarts of Valkey; three ledgers must agree.

The test keeps its own ledger of what it sent and of what the verdict must be. Afterwards every answer has exactly one
terminal state, and the totals, the rows and the test's ledger are equal, number by number.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import secrets
import signal
import subprocess
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest
import redis

from aftercheck_schemas import Chunk, EntryHeader, SpanRecord, encode_entry, stream_key
from aftercheck_schemas.wire import ADMIT_LUA, DEFAULT_MAX_BYTES, DEFAULT_MAX_ENTRIES, bytes_key
from aftercheck_worker.storage import database, totals
from tests.faults.fleet import Broker, Connection, Fleet, number, until

logger = logging.getLogger(__name__)

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]

TRACES: Final = int(os.environ.get("CHAOS_TRACES", "6000"))
SEED: Final = int(os.environ.get("CHAOS_SEED", "0")) or secrets.randbelow(10**6)
SEND_SECONDS: Final = 30.0
DRAIN_SECONDS: Final = 100.0
CONTEXT: Final = "The cancellation fee is five euros for all plans."
ANSWERS: Final = {
    "grounded": "The cancellation fee is five euros for all plans.",
    "ungrounded": "Zebras graze under turquoise bridges every Wednesday afternoon.",
    "abstained": "I cannot find that in the documents.",
}


def entry(trace_id: str, answer: str) -> list[str | bytes]:
    """A stream entry with one chat span, as the SDK sends it."""
    now = time.time_ns()
    prompt = f"Context:\n{CONTEXT}\n\nQuestion: What is the cancellation fee?"
    span = SpanRecord(
        trace_id=trace_id,
        span_id=trace_id[:16],
        name="chat m",
        kind="client",
        start=now - 10**9,
        end=now,
        status="ok",
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": prompt}]}]),
            "gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "parts": [{"type": "text", "content": answer}], "finish_reason": "stop"}]
            ),
        },
    )
    body = msgspec.json.encode(Chunk(spans=(span,)))
    header = EntryHeader(app="chaos", trace_id=trace_id, root=True, local_complete=True, size=len(body))
    return encode_entry(header, zlib.compress(body))


class Producer(threading.Thread):
    """Sends the traces evenly over SEND_SECONDS and repeats what Valkey did not acknowledge, as our sender would."""

    def __init__(self, broker: Broker, sent: dict[str, str]) -> None:
        super().__init__(name="producer", daemon=True)
        self._broker, self._sent = broker, sent
        self.done = 0

    def run(self) -> None:
        begun = time.monotonic()
        waiting = list(self._sent.items())
        while waiting:
            batch = waiting[:100]
            try:
                with self._broker.client() as client:
                    self._push(client, batch)
            except redis.RedisError:
                time.sleep(0.2)
                continue
            waiting = waiting[100:]
            self.done += len(batch)
            time.sleep(max(0.0, begun + SEND_SECONDS * self.done / TRACES - time.monotonic()))

    def _push(self, client: redis.Redis, batch: list[tuple[str, str]]) -> None:
        with client.pipeline(transaction=True) as pipe:
            for trace_id, outcome in batch:
                fields = entry(trace_id, ANSWERS[outcome])
                size = sum(len(f) for f in fields)
                pipe.eval(
                    ADMIT_LUA, 2, stream_key(), bytes_key(), DEFAULT_MAX_ENTRIES, DEFAULT_MAX_BYTES, size, *fields
                )  # fmt: skip
            assert b"full" not in pipe.execute()


class Nemesis:
    """Kills one process group, or one process inside a group, at a time; groups are started again at once."""

    def __init__(self, fleet: Fleet, dice: random.Random) -> None:
        self._fleet, self._dice = fleet, dice
        self.kills = Counter[str]()
        self._groups = [
            (arguments, fleet.start(*arguments)) for arguments in 2 * (("worker", "--no-intake"), ("intake",))
        ]

    def strike(self) -> None:
        """Kill something."""
        place = self._dice.randrange(len(self._groups))
        arguments, process = self._groups[place]
        inner = _children(process)
        if inner and self._dice.random() < 0.5:
            self.kills["process"] += 1
            os.kill(self._dice.choice(inner), signal.SIGKILL)
            return
        self.kills["group"] += 1
        self._fleet.kill(process)
        self._groups[place] = (arguments, self._fleet.start(*arguments))

    def revive(self) -> None:
        """Start again what ended by itself."""
        for place, (arguments, process) in enumerate(self._groups):
            if process.poll() is not None:
                self.kills["revived"] += 1
                self._groups[place] = (arguments, self._fleet.start(*arguments))


def _children(process: subprocess.Popen[bytes]) -> list[int]:
    """The other processes of the group."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            pid = int(folder.name)
            if pid != process.pid and os.getpgid(pid) == process.pid:
                found.append(pid)
    return found


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    running = Broker(tmp_path / "broker", fsync_always=True)
    running.start()
    yield running
    running.stop()


@pytest.fixture
def fleet(database_url: str, broker: Broker, tmp_path: Path) -> Iterator[Fleet]:
    logs = tmp_path / "logs"
    logs.mkdir()
    environ = {
        "DATABASE_URL": database_url,
        "REDIS_URL": broker.url,
        "AFTERCHECK_HOME": str(tmp_path / "home"),
        "AFTERCHECK_EVALUATOR": "lexical-v1",
        "AFTERCHECK_SAMPLING_RATE": "1",
        "AFTERCHECK_QUIET_SECONDS": "0.5",
        "AFTERCHECK_LEASE_SECONDS": "5",
        "AFTERCHECK_TASK_TIME_LIMIT": "4",
        "AFTERCHECK_VISIBILITY_TIMEOUT": "9",
        "AFTERCHECK_STUCK_SECONDS": "10",
        "AFTERCHECK_RECONCILE_SECONDS": "2",
    }
    with Fleet(environ, logs) as running:
        yield running


@pytest.mark.req("F01", "F03", "F07", "F27", "F28", "P5", "P6", "P7", "I3", "I4", "I7", "I8")
def test_three_ledgers_agree_after_chaos(fleet: Fleet, broker: Broker, database_url: str) -> None:
    dice = random.Random(SEED)
    logger.warning("CHAOS_SEED=%d", SEED)
    sent = {f"{dice.getrandbits(128):032x}": dice.choice(list(ANSWERS)) for _ in range(TRACES)}
    nemesis = Nemesis(fleet, dice)
    producer = Producer(broker, sent)

    with database.connect(database_url, name="test") as connection:
        connection.autocommit = True
        until(lambda: fleet.log().count("ready.") >= 2, 40, "the workers are ready", fleet.log)
        producer.start()
        _storm(nemesis, broker, dice)
        producer.join(60)
        assert producer.done == TRACES

        def settled() -> bool:
            nemesis.revive()
            return number(connection, "SELECT count(*) FROM ledger WHERE finalised_at IS NOT NULL") >= TRACES

        begun = time.monotonic()
        until(settled, DRAIN_SECONDS, f"seed {SEED}: {_by_state(connection)}", fleet.log)
        logger.warning("kills %s, drained %.1f s after the last trace", dict(nemesis.kills), time.monotonic() - begun)
        _agree(connection, sent)


def _storm(nemesis: Nemesis, broker: Broker, dice: random.Random) -> None:
    """Kill for SEND_SECONDS, with three restarts of Valkey in between, by SIGTERM, SIGKILL and SIGKILL."""
    end = time.monotonic() + SEND_SECONDS
    restarts = [(end - SEND_SECONDS * share, kill) for share, kill in ((0.75, False), (0.5, True), (0.25, True))]
    while time.monotonic() < end:
        time.sleep(dice.uniform(1.5, 3.0))
        nemesis.strike()
        nemesis.revive()
        if restarts and time.monotonic() > restarts[0][0]:
            broker.restart(kill=restarts.pop(0)[1], down=dice.uniform(0.2, 1.0))
    assert not restarts


def _by_state(connection: Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT state, count(*) FROM ledger GROUP BY 1").fetchall())


def _agree(connection: Connection, sent: dict[str, str]) -> None:
    """The test's ledger == Postgres' ledger == its rows == its totals."""
    expected = Counter(sent.values())
    states = Counter({"scored": expected["grounded"] + expected["ungrounded"], "abstained": expected["abstained"]})
    faithful = expected["grounded"], expected["grounded"] + expected["ungrounded"]

    assert _by_state(connection) == states
    found: dict[str, str] = dict(connection.execute("SELECT trace_id, outcome FROM evaluation").fetchall())
    assert number(connection, "SELECT count(*) FROM evaluation") == len(sent)
    assert found == sent

    summed = Counter[tuple[str, str]]()
    for total in totals.read(connection, "default"):
        summed[total.name.metric, total.name.key] += total.value  # type: ignore[assignment]
    assert {key: summed[totals.STATES, key] for key in states} == states
    assert {key: summed[totals.ANSWERS_RAW, key] for key in ANSWERS} == expected
    assert (summed[totals.FAITHFULNESS_RAW_SUM, ""], summed[totals.FAITHFULNESS_RAW_COUNT, ""]) == faithful
    assert (summed[totals.FAITHFULNESS_SUM, ""], summed[totals.FAITHFULNESS_COUNT, ""]) == faithful
    assert summed[totals.HALLUCINATED_RAW, ""] == expected["ungrounded"]
    verdicts: dict[str, int] = dict(connection.execute("SELECT status, count(*) FROM verdict GROUP BY 1").fetchall())
    assert {key: summed[totals.CLAIMS, key] for key in verdicts} == verdicts
