"""Faults around the Celery worker: real processes, real Postgres, real Valkey."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import redis

from aftercheck_worker import app, reconcile, testing
from aftercheck_worker import settings as worker_settings
from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database
from tests.faults import scripted
from tests.faults.fleet import Broker, Connection, Fleet, add, finished, number, states, until
from tests.faults.proxy import FaultProxy

pytestmark = [pytest.mark.faults, pytest.mark.timeout(120)]

LIMITS = {"AFTERCHECK_TASK_TIME_LIMIT": "10", "AFTERCHECK_VISIBILITY_TIMEOUT": "21"}
"""Short, but longer than a spawned child needs to start on a busy machine."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    running = Broker(tmp_path_factory.mktemp("broker"))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def environ(database_url: str, broker: Broker, tmp_path: Path) -> dict[str, str]:
    with broker.client() as client:
        client.flushall()
    return {
        "DATABASE_URL": database_url,
        "REDIS_URL": broker.url,
        "AFTERCHECK_HOME": str(tmp_path / "home"),
        "AFTERCHECK_EVALUATOR": scripted.NAME,
        **LIMITS,
    }


@pytest.fixture
def settings(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    worker_settings.current.cache_clear()
    app.app.conf.update(broker_url=environ["REDIS_URL"])
    yield worker_settings.current()
    worker_settings.current.cache_clear()


@pytest.fixture
def fleet(environ: dict[str, str], settings: Settings, tmp_path: Path) -> Iterator[Fleet]:
    """Workers, with the reconciler that every intake runs beside them."""
    logs = tmp_path / "logs"
    logs.mkdir()
    stop = threading.Event()
    short = settings.model_copy(update={"stuck_seconds": 4.0, "task_time_limit": 4, "reconcile_seconds": 0.5})
    timer = threading.Thread(
        target=reconcile.Reconciler(short, app.send_check).run, args=(environ["DATABASE_URL"], stop)
    )
    with Fleet(environ, logs) as running:
        timer.start()
        yield running
        stop.set()
        timer.join()


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    with database.connect(database_url, name="test") as opened:
        opened.autocommit = True
        yield opened


def texts(connection: Connection, answers: Sequence[str]) -> list[int]:
    return add(connection, [testing.interaction(answer, "x") for answer in answers])


def plain(connection: Connection, n: int) -> list[int]:
    return texts(connection, [f"Dogs bark at {k} o'clock." for k in range(n)])


def settled(connection: Connection, ids: list[int], fleet: Fleet, seconds: float = 40) -> None:
    until(lambda: finished(connection, ids), seconds, f"{states(connection, ids)}", fleet.log)


def in_work(connection: Connection, ids: list[int], fleet: Fleet) -> None:
    until(lambda: "checking" in {s for s, _ in states(connection, ids)}, 30, "a worker has begun", fleet.log)


def rows_match(connection: Connection, ids: list[int]) -> None:
    scored = sum(state == "scored" for state, _ in states(connection, ids))
    assert number(connection, "SELECT count(*) FROM evaluation WHERE evaluation_id = ANY(%s)", ids) == scored


@pytest.mark.req("F01", "I4")
def test_f01_kill_9_of_a_worker_in_the_middle_of_a_message(fleet: Fleet, connection: Connection) -> None:
    first = fleet.start("worker", "--no-intake")
    ids = texts(connection, ["slow 3 One dog barks."]) + plain(connection, 20)
    app.send_check(ids)
    in_work(connection, ids, fleet)

    fleet.kill(first)
    fleet.start("worker", "--no-intake")

    settled(connection, ids, fleet, 50)
    assert states(connection, ids) == [("scored", None)] * 21
    rows_match(connection, ids)


@pytest.mark.req("F02", "P10")
def test_f02_sigterm_drains_and_exits_0(fleet: Fleet, connection: Connection) -> None:
    worker = fleet.start("worker", "--no-intake")
    running = texts(connection, ["slow 2 One dog barks."])
    waiting = plain(connection, 40)
    app.send_check(running)
    in_work(connection, running, fleet)
    for one in waiting:
        app.send_check([one])

    os.kill(worker.pid, signal.SIGTERM)

    assert worker.wait(30) == 0, fleet.log()
    assert states(connection, running) == [("scored", None)]
    left = [state for state, _ in states(connection, waiting)]
    assert "pending" in left, "a draining worker fetched everything"
    fleet.start("worker", "--no-intake")
    settled(connection, waiting, fleet)


@pytest.mark.req("F03")
def test_f03_a_second_sigterm_ends_it_and_nothing_is_lost(fleet: Fleet, connection: Connection) -> None:
    worker = fleet.start("worker", "--no-intake")
    ids = texts(connection, ["slow 3.5 One dog barks."])
    app.send_check(ids)
    in_work(connection, ids, fleet)

    os.kill(worker.pid, signal.SIGTERM)
    os.kill(worker.pid, signal.SIGTERM)
    worker.wait(30)
    fleet.start("worker", "--no-intake")

    settled(connection, ids, fleet, 50)
    assert states(connection, ids) == [("scored", None)]


@pytest.mark.req("F04")
@pytest.mark.parametrize("word", [scripted.POISON, scripted.FAT])
def test_f04_an_answer_that_kills_its_process_ends_in_a_dead_letter_alone(
    fleet: Fleet, connection: Connection, word: str
) -> None:
    ids = plain(connection, 5) + texts(connection, [f"{word} One dog barks."]) + plain(connection, 5)
    fleet.start("worker", "--no-intake")
    app.send_check(ids)

    settled(connection, ids, fleet, 60)

    assert (
        states(connection, ids) == [("scored", None)] * 5 + [("dead_letter", "crash_loop")] + [("scored", None)] * 5
    )
    rows_match(connection, ids)


@pytest.mark.req("F07")
def test_f07_a_killed_valkey_comes_back_with_its_queue(fleet: Fleet, connection: Connection, broker: Broker) -> None:
    ids = texts(connection, [f"slow 0.2 Dog {k} barks." for k in range(30)])
    for start in range(0, 30, 3):
        app.send_check(ids[start : start + 3])
    fleet.start("worker", "--no-intake")
    in_work(connection, ids, fleet)

    broker.restart(kill=True, down=1)

    settled(connection, ids, fleet, 60)
    assert states(connection, ids) == [("scored", None)] * 30
    rows_match(connection, ids)


@pytest.mark.req("F08")
def test_f08_a_full_valkey_stops_nothing_for_good(fleet: Fleet, connection: Connection, broker: Broker) -> None:
    ids = plain(connection, 60)
    worker = fleet.start("worker", "--no-intake")
    warm = plain(connection, 1)
    app.send_check(warm)
    settled(connection, warm, fleet)
    for one in ids:
        app.send_check([one])
    with broker.client() as client:
        client.config_set("maxmemory", "1")
        ids += plain(connection, 1)
        with pytest.raises(DependencyUnavailable, match="broker took no message"):
            app.send_check(ids[-1:])
        until(lambda: "celery ended" in fleet.log() or finished(connection, ids[:-1]), 30, "an effect", fleet.log)
        client.config_set("maxmemory", "0")
    app.send_check(ids[-1:])

    settled(connection, ids, fleet, 60)
    assert worker.poll() is None


@pytest.mark.req("F09")
def test_f09_an_evicting_valkey_is_refused_with_78(fleet: Fleet, broker: Broker) -> None:
    with broker.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            assert fleet.start("worker", "--no-intake").wait(30) == 78
            assert "allkeys-lru" in fleet.log()
            allowed = fleet.start("worker", "--no-intake", "--allow-eviction")
            until(lambda: fleet.log().count("ready.") == 1, 30, "the worker is ready", fleet.log)
            assert allowed.poll() is None
        finally:
            client.config_set("maxmemory-policy", "noeviction")


@pytest.mark.req("F11")
def test_f11_a_black_holed_postgres_costs_time_and_nothing_else(
    fleet: Fleet, connection: Connection, database_url: str
) -> None:
    target = urlsplit(database_url)
    with FaultProxy("127.0.0.1", target.port or 5432) as proxy:
        through = database_url.replace(f":{target.port}/", f":{proxy.port}/")
        assert through != database_url
        worker = fleet.start("worker", "--no-intake", DATABASE_URL=through)
        warm = plain(connection, 1)
        app.send_check(warm)
        settled(connection, warm, fleet)
        proxy.set("blackhole")
        ids = plain(connection, 40)
        app.send_check(ids)
        until(lambda: "Postgres is away" in fleet.log(), 30, "the worker has noticed", fleet.log)
        proxy.set("ok")

        settled(connection, ids, fleet, 50)

    assert states(connection, ids) == [("scored", None)] * 40
    assert worker.poll() is None


@pytest.mark.req("F27", "I4")
def test_f27_five_deliveries_on_two_workers_give_one_row(fleet: Fleet, connection: Connection) -> None:
    ids = plain(connection, 64)
    for _ in range(5):
        app.send_check(ids)
    for _ in range(2):
        fleet.start("worker", "--no-intake")

    settled(connection, ids, fleet)
    until(lambda: idle(fleet), 30, "the queues are empty", fleet.log)
    assert number(connection, "SELECT count(*) FROM evaluation WHERE evaluation_id = ANY(%s)", ids) == 64


@pytest.mark.req("F36")
def test_f36_a_wiped_valkey_is_refilled_from_the_ledger(fleet: Fleet, connection: Connection, broker: Broker) -> None:
    worker = fleet.start("worker", "--no-intake")
    warm = plain(connection, 1)
    app.send_check(warm)
    settled(connection, warm, fleet)
    ids = texts(connection, [f"slow 0.3 Dog {k} barks." for k in range(30)])
    for one in ids:
        app.send_check([one])
    in_work(connection, ids, fleet)

    with broker.client() as client:
        client.flushall()

    settled(connection, ids, fleet, 60)
    assert states(connection, ids) == [("scored", None)] * 30
    rows_match(connection, ids)
    assert worker.poll() is None


def idle(fleet: Fleet) -> bool:
    with redis.Redis.from_url(fleet.environ["REDIS_URL"]) as client:
        return not any(client.llen(q) for q in (app.QUEUE_HIGH, app.QUEUE_SHADOW)) and not client.hlen("unacked")


@pytest.mark.req("F35", "I7")
@pytest.mark.timeout(300)
def test_f35_a_worker_that_stands_still_is_killed_and_its_work_is_done(
    fleet: Fleet, connection: Connection, environ: dict[str, str]
) -> None:
    """The Celery main process is stopped by SIGSTOP: it holds its connections, and nothing but a watchdog ends it."""
    # Above the task's time limit of 10 s and above the time that a child needs to start.
    worker = fleet.start("worker", "--no-intake", AFTERCHECK_WATCHDOG_SECONDS="15")
    ids = plain(connection, 3)
    app.send_check(ids)
    settled(connection, ids, fleet, seconds=90)
    (celery,) = psutil.Process(worker.pid).children()
    celery.suspend()

    later = plain(connection, 3)
    app.send_check(later)
    settled(connection, later, fleet, seconds=150)

    (again,) = psutil.Process(worker.pid).children()
    assert again.pid != celery.pid
    assert any("child_wedged" in log.read_text("utf-8", "replace") for log in fleet._logs.iterdir())
    assert worker.poll() is None


@pytest.mark.req("F35")
def test_f35_an_intake_that_stands_still_is_killed_and_started_again(fleet: Fleet) -> None:
    """It has to move even when nothing waits; the Celery worker beside it, idle at an empty queue, is left alone."""
    worker = fleet.start("worker", AFTERCHECK_WATCHDOG_SECONDS="8")

    def child(role: str) -> psutil.Process | None:
        for one in psutil.Process(worker.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):  # killed just now, not yet reaped
                if role in one.cmdline():
                    return one
        return None

    until(lambda: "intake_start" in fleet.log() and child("celery") is not None, 60, "an intake runs", fleet.log)
    first, celery = child("intake"), child("celery")
    assert first is not None
    first.suspend()

    def again() -> bool:
        found = child("intake")
        return found is not None and found.pid != first.pid

    until(again, 60, "another intake", fleet.log)
    assert child("celery") == celery
