"""Postgres away, hung, killed, full or in conflict: bounded waits, the right class of error, nothing lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import TupleRow

from aftercheck_worker import embedded
from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.storage import database, ledger, migrate, totals
from aftercheck_worker.storage.totals import TotalKey
from tests.faults.proxy import FaultProxy

pytestmark = pytest.mark.faults

Connection = psycopg.Connection[TupleRow]
_LIMIT = sql.SQL("ALTER DATABASE {} CONNECTION LIMIT {}")


@pytest.fixture
def proxied(database_url: str) -> Iterator[tuple[FaultProxy, str]]:
    parts = urlsplit(database_url)
    assert parts.hostname
    assert parts.port
    with FaultProxy(parts.hostname, parts.port) as proxy:
        yield proxy, database_url.replace(f":{parts.port}/", f":{proxy.port}/")


def _answers(start: int, count: int, app: str) -> list[ledger.NewAnswer]:
    return [
        ledger.NewAnswer(tenant="default", trace_id=f"{app}-{number}", span_id="1", app=app, body=b"{}")
        for number in range(start, start + count)
    ]


@pytest.mark.req("F11")
def test_nothing_listens(proxied: tuple[FaultProxy, str]) -> None:
    proxy, url = proxied
    with database.connect(url, name="test") as connection:
        proxy.set("down")
        with pytest.raises(psycopg.OperationalError) as told:
            connection.execute("SELECT 1")
    assert database.classify(told.value) == "unavailable"

    with pytest.raises(DependencyUnavailable, match="does not answer") as refused:
        database.connect(url, name="test")
    assert database.classify(refused.value) == "unavailable"

    proxy.set("ok")
    with database.connect(url, name="test") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.req("F11")
def test_a_black_hole_ends_every_wait(proxied: tuple[FaultProxy, str]) -> None:
    proxy, url = proxied
    connection = database.connect(url, name="test", statement_timeout=0.5)
    proxy.set("blackhole")
    with ThreadPoolExecutor(1) as pool:
        # The thread would hang for ever without our deadline; the test fails then instead of hanging with it.
        error = pool.submit(_error_of, lambda: connection.execute("SELECT 1")).result(30)
        assert database.classify(error) == "unavailable"
        assert connection.closed
        error = pool.submit(_error_of, lambda: database.connect(url, name="test")).result(30)
        assert database.classify(error) == "unavailable"


def _error_of(step: Callable[[], object]) -> BaseException:
    try:
        step()
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.req("F12")
def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    with embedded.start(tmp_path, valkey=False) as first:
        url = first.environ()["DATABASE_URL"]
        migrate.upgrade(url)
        acknowledged: list[str] = []
        errors: list[BaseException] = []

        def write() -> None:
            try:
                with database.connect(url, name="test") as connection:
                    for number in range(100_000):
                        new = _answers(number, 1, "kill")
                        rows = database.transaction(connection, partial(ledger.insert, answers=new))
                        acknowledged.extend(row.trace_id for row in rows)
            except psycopg.Error as error:
                errors.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        _wait(lambda: len(acknowledged) >= 100)
        # The servers run in a session of their own; the postmaster's death by SIGKILL takes its backends along.
        os.kill(first.pids()["postgres"], signal.SIGKILL)
        writer.join(30)
        assert not writer.is_alive()
        assert [database.classify(error) for error in errors] == ["unavailable"]

    with embedded.start(tmp_path, valkey=False) as second:
        with database.connect(second.environ()["DATABASE_URL"], name="test") as connection:
            stored = {str(row[0]) for row in connection.execute("SELECT trace_id FROM ledger").fetchall()}
            bodies = connection.execute("SELECT count(*) FROM interaction").fetchone()
        assert set(acknowledged) <= stored
        # At most the one transaction whose answer got lost on the way.
        assert len(stored) - len(acknowledged) <= 1
        assert bodies == (len(stored),)


@pytest.mark.req("F13")
def test_a_terminated_backend_is_unavailable_and_a_new_connection_works(database_url: str) -> None:
    with database.connect(database_url, name="test") as killer:
        with database.connect(database_url, name="victim") as victim:
            killer.execute("SELECT pg_terminate_backend(%s)", (victim.info.backend_pid,))
            with pytest.raises(psycopg.OperationalError) as told:
                victim.execute("SELECT 1")
            assert database.classify(told.value) == "unavailable"
            assert victim.closed
        with database.connect(database_url, name="next") as again:
            assert again.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.req("F14")
def test_a_deadlock_is_repeated_and_both_transactions_count(database_url: str) -> None:
    together = threading.Barrier(2)
    tries: list[str] = []

    def add(first: str, second: str) -> None:
        with database.connect(database_url, name="test", statement_timeout=20) as connection:
            fresh = True

            def work(c: Connection) -> None:
                nonlocal fresh
                tries.append(first)
                totals.add(c, "default", {TotalKey(totals.SAMPLED, first): 1})
                if fresh:
                    fresh = False
                    together.wait(10)
                totals.add(c, "default", {TotalKey(totals.SAMPLED, second): 1})

            database.transaction(connection, work)

    with ThreadPoolExecutor(2) as pool:
        for job in (pool.submit(add, "left", "right"), pool.submit(add, "right", "left")):
            job.result(40)

    assert len(tries) > 2
    with database.connect(database_url, name="test") as connection:
        found = {total.name.app: total.value for total in totals.read(connection)}
    assert (found["left"], found["right"]) == (2, 2)


@pytest.mark.req("F14")
def test_a_conflict_that_stays_is_raised_after_five_tries(database_url: str) -> None:
    tries: list[int] = []

    def work(c: Connection) -> None:
        tries.append(1)
        c.execute("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")

    with database.connect(database_url, name="test") as connection:
        with pytest.raises(psycopg.errors.SerializationFailure) as told:
            database.transaction(connection, work)
        assert database.classify(told.value) == "serialization"
        assert len(tries) == 5
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.req("F16")
def test_no_free_connection_is_unavailable_and_passes(database_url: str) -> None:
    with database.connect(database_url, name="test") as connection:
        connection.autocommit = True
        name = connection.info.dbname
        # The limit of a database does not bind a superuser: an ordinary role asks.
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
        connection.execute(_LIMIT.format(sql.Identifier(name), sql.Literal(0)))
        parts = urlsplit(database_url)
        guest = f"postgresql://guest:guest@{parts.hostname}:{parts.port}/{name}"
        try:
            with pytest.raises(DependencyUnavailable) as told:
                database.connect(guest, name="guest")
            assert isinstance(told.value.__cause__, psycopg.OperationalError)
            assert told.value.__cause__.sqlstate is None
            assert database.classify(told.value.__cause__) == "unavailable"
            connection.execute(_LIMIT.format(sql.Identifier(name), sql.Literal(-1)))
            with database.connect(guest, name="guest") as again:
                assert again.execute("SELECT 1").fetchone() == (1,)
        finally:
            connection.execute("DROP ROLE guest")


@pytest.mark.req("F17")
def test_statements_and_locks_have_an_end(database_url: str) -> None:
    with database.connect(database_url, name="test", statement_timeout=0.2) as connection:
        with pytest.raises(psycopg.errors.QueryCanceled) as told:
            connection.execute("SELECT pg_sleep(60)")
        assert database.classify(told.value) == "unavailable"
        connection.rollback()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail("did not happen within 30 s")
        time.sleep(0.01)
