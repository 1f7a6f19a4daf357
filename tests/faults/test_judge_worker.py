"""The judge beside real Celery workers, on real Postgres and Valkey: routed, dead, killed, hanging (F18-F20)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from aftercheck_worker import app, reconcile, testing
from aftercheck_worker import settings as worker_settings
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database, totals
from tests.faults import scripted
from tests.faults.fleet import Broker, Connection, Fleet, add, finished, number, states, until
from tests.faults.judge_server import JudgeServer, Reply, serving
from tests.faults.opinion import always, says

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

PASSAGE = "Dogs bark at night. Cats sleep at noon."
GOOD = says("supported", "Dogs bark at night.")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    running = Broker(tmp_path_factory.mktemp("broker"))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with serving(GOOD) as running:
        yield running


@pytest.fixture
def environ(database_url: str, broker: Broker, server: JudgeServer, tmp_path: Path) -> dict[str, str]:
    with broker.client() as client:
        client.flushall()
    return {
        "DATABASE_URL": database_url,
        "REDIS_URL": broker.url,
        "AFTERCHECK_HOME": str(tmp_path / "home"),
        "AFTERCHECK_EVALUATOR": scripted.NAME,
        "AFTERCHECK_JUDGE_URL": server.url,
        "AFTERCHECK_JUDGE_MODE": "plain",
        "AFTERCHECK_JUDGE_SHARE": "all",
        "AFTERCHECK_JUDGE_AUDIT": "0",
        "AFTERCHECK_JUDGE_CANARIES": "0",
        "AFTERCHECK_JUDGE_TRIAD": "false",
        "AFTERCHECK_JUDGE_SECONDS": "120",
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
    quick = settings.model_copy(update={"reconcile_seconds": 0.5})
    timer = threading.Thread(
        target=reconcile.Reconciler(quick, app.send_check, send_judge=app.send_judge).run,
        args=(environ["DATABASE_URL"], stop),
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
        opened.execute("DELETE FROM total")
        opened.execute("DELETE FROM verdict")
        yield opened


def dogs(connection: Connection, count: int) -> list[int]:
    answers = [testing.interaction("Dogs bark at night.", PASSAGE, question="When?") for _ in range(count)]
    return add(connection, answers)


def settled(connection: Connection, ids: Sequence[int], fleet: Fleet, seconds: float = 150) -> None:
    until(lambda: finished(connection, ids), seconds, f"{states(connection, ids)}", fleet.log)


def judging(fleet: Fleet, connection: Connection) -> None:
    """Wait until both workers have started: an answer has gone through them, by the judge or by its deadline."""
    found: list[int] = []

    def judged() -> bool:
        if not found or finished(connection, found):
            by = number(connection, "SELECT count(*) FROM verdict WHERE decided_by = 'judge'")
            if by:
                return True
            found[:] = dogs(connection, 1)
            app.send_check(found)
        return False

    until(judged, 200, "an answer is judged", fleet.log)
    connection.execute("DELETE FROM total")


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def counted(connection: Connection, metric: str) -> dict[str, float]:
    return {total.name.key: total.value for total in totals.read(connection) if total.name.metric == metric}


def written_once(connection: Connection, ids: Sequence[int]) -> bool:
    return number(connection, "SELECT count(*) FROM evaluation WHERE evaluation_id = ANY(%s)", list(ids)) == len(ids)


@pytest.mark.req("R24", "I4")
def test_answers_are_judged_by_a_process_of_their_own_and_finished_once(
    fleet: Fleet, connection: Connection, server: JudgeServer
) -> None:
    fleet.start("worker", "--no-intake")
    ids = dogs(connection, 40)

    app.send_check(ids)
    app.send_check(ids)
    settled(connection, ids, fleet)
    app.send_judge(ids)

    assert states(connection, ids) == [("scored", None)] * 40
    assert written_once(connection, ids)
    assert counted(connection, totals.FINALISED) == {"judge": 40.0}
    assert counted(connection, totals.JUDGE_ANSWERS) == {"judged": 40.0}
    assert len(server.requests) == 40


@pytest.mark.req("F19", "P7")
def test_a_dead_judge_costs_no_answer(fleet: Fleet, connection: Connection) -> None:
    dead = f"http://127.0.0.1:{free_port()}/v1"
    fleet.start("worker", "--no-intake", AFTERCHECK_JUDGE_CALL_SECONDS="3", AFTERCHECK_JUDGE_URL=dead)
    ids = dogs(connection, 10)

    app.send_check(ids)
    settled(connection, ids, fleet)

    assert states(connection, ids) == [("scored", None)] * 10
    assert written_once(connection, ids)
    assert counted(connection, totals.FINALISED) == {"verifier_fallback": 10.0}
    assert counted(connection, totals.JUDGE_ANSWERS) == {"fallback": 10.0}
    failures = counted(connection, totals.EVALUATOR_FAILURES)
    assert sum(failures.values()) == 10
    assert failures.keys() <= {"judge_unavailable", "judge_circuit_open", "judge_deadline"}


@pytest.mark.req("F20", "O-05")
def test_a_judge_that_hangs_holds_no_check_and_ends_at_the_deadline(
    fleet: Fleet, connection: Connection, server: JudgeServer
) -> None:
    fleet.start("worker", "--no-intake", AFTERCHECK_JUDGE_SECONDS="20")
    judging(fleet, connection)
    server.script = always(Reply(hang=True))
    first, second = dogs(connection, 3), dogs(connection, 3)

    app.send_check(first)
    until(lambda: server.open > 0, 150, "the judge was asked", fleet.log)
    app.send_check(second)
    until(lambda: {s for s, _ in states(connection, second)} == {"judging"}, 15, "checks go on", fleet.log)

    ids = [*first, *second]
    settled(connection, ids, fleet)
    assert written_once(connection, ids)
    assert counted(connection, totals.FINALISED) == {"verifier_fallback": 6.0}


@pytest.mark.req("F01", "I4")
def test_kill_9_while_judging_loses_and_doubles_nothing(
    fleet: Fleet, connection: Connection, server: JudgeServer
) -> None:
    killed = fleet.start("worker", "--no-intake", AFTERCHECK_JUDGE_SECONDS="20")
    judging(fleet, connection)
    server.script = always(Reply(hang=True))
    ids = dogs(connection, 5)
    app.send_check(ids)
    until(lambda: server.open > 0, 150, "the judge was asked", fleet.log)

    fleet.kill(killed)
    server.script = GOOD
    fleet.start("worker", "--no-intake")
    more = dogs(connection, 5)
    app.send_check(more)

    settled(connection, [*ids, *more], fleet)
    assert written_once(connection, [*ids, *more])
    assert counted(connection, totals.FINALISED) == {"verifier_fallback": 5.0, "judge": 5.0}


@pytest.mark.parametrize(
    "environ_of",
    [
        lambda: {"AFTERCHECK_JUDGE_URL": "ftp://x"},
        lambda: {"AFTERCHECK_JUDGE_DOLLARS_PER_DAY": "5"},
        lambda: {"AFTERCHECK_JUDGE_SECONDS": "290"},
    ],
    ids=["not a URL", "dollars without prices", "a deadline beyond the task's"],
)
def test_a_judge_that_cannot_work_stops_the_worker_at_its_start(
    fleet: Fleet, environ_of: Callable[[], dict[str, str]]
) -> None:
    worker = fleet.start("worker", "--no-intake", **environ_of())

    assert worker.wait(60) == 78, fleet.log()
