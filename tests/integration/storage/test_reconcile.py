"""Lost messages are sent again, by one process at a time, and never too often."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_worker import reconcile
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import ledger, partitions, totals

pytestmark = pytest.mark.integration

Connection = psycopg.Connection[TupleRow]
Answers = Callable[..., list[ledger.NewAnswer]]


class Sent:
    """Records what would go to the queue; raises while `broken`."""

    def __init__(self) -> None:
        self.messages: list[tuple[list[int], bool]] = []
        self.broken = False

    def __call__(self, ids: Sequence[int], high: bool) -> None:
        if self.broken:
            raise ConnectionError("broker away")
        self.messages.append((list(ids), high))

    @property
    def ids(self) -> list[int]:
        return sorted(number for ids, _ in self.messages for number in ids)


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
def reconciler(settings: Settings, sent: Sent, connection: Connection) -> reconcile.Reconciler:
    connection.execute("UPDATE ledger SET state = 'expired' WHERE state IN ('pending', 'checking', 'judging')")
    return reconcile.Reconciler(settings, sent)


def _age(connection: Connection, ids: Sequence[int], seconds: float, *, born: float | None = None) -> None:
    connection.execute(
        "UPDATE ledger SET updated_at = now() - make_interval(secs => %s),"
        " created_at = now() - make_interval(secs => %s) WHERE evaluation_id = ANY(%s)",
        (float(seconds), float(born if born is not None else seconds), list(ids)),
    )


def _insert(connection: Connection, answers: Answers, count: int = 1, **fields: object) -> list[int]:
    return [row.evaluation_id for row in ledger.insert(connection, answers(count, **fields))]


@pytest.mark.req("F01", "I7")
def test_only_what_is_stuck_is_sent_again(
    connection: Connection, answers: Answers, reconciler: reconcile.Reconciler, sent: Sent, settings: Settings
) -> None:
    fresh, lost, working, dead = (_insert(connection, answers)[0] for _ in range(4))
    ledger.claim(connection, [working, dead])
    _age(connection, [lost], settings.stuck_seconds + 1)
    _age(connection, [working], settings.task_time_limit * 2 - 5)
    _age(connection, [dead], settings.task_time_limit * 2 + 1)

    report = reconciler.once(connection)

    assert report is not None
    assert report.resent == 2
    assert sent.ids == sorted([lost, dead])
    assert fresh not in sent.ids
    states = {
        total.name.key: total.value for total in totals.read(connection) if total.name.metric == totals.RECONCILED
    }
    assert states == {"pending": 1, "checking": 1}


def test_batches_priorities_and_lonely_answers(
    connection: Connection, answers: Answers, reconciler: reconcile.Reconciler, sent: Sent, settings: Settings
) -> None:
    plain = _insert(connection, answers, settings.batch_size + 1)
    urgent = _insert(connection, answers, 1, priority=1)
    alone = _insert(connection, answers, 2)
    ledger.mark_solo(connection, alone)
    _age(connection, [*plain, *urgent, *alone], 1000)

    reconciler.once(connection)

    assert sent.messages[0] == (urgent, True)
    assert [len(ids) for ids, high in sent.messages if not high] == [settings.batch_size, 1, 1, 1]
    assert sent.ids == sorted([*plain, *urgent, *alone])


@pytest.mark.req("F29")
def test_a_long_queue_is_not_doubled_by_us(
    connection: Connection, answers: Answers, reconciler: reconcile.Reconciler, sent: Sent
) -> None:
    waiting = _insert(connection, answers)
    _age(connection, waiting, 200, born=600)
    reconciler.once(connection)
    assert sent.ids == []

    _age(connection, waiting, 450, born=600)
    reconciler.once(connection)
    reconciler.once(connection)
    assert sent.ids == waiting


@pytest.mark.req("F06")
def test_without_a_broker_nothing_is_touched(
    connection: Connection, answers: Answers, reconciler: reconcile.Reconciler, sent: Sent
) -> None:
    lost = _insert(connection, answers)
    _age(connection, lost, 1000)
    sent.broken = True
    with pytest.raises(ConnectionError):
        reconciler.once(connection)

    sent.broken = False
    reconciler.once(connection)

    assert sent.ids == lost


def test_an_answer_put_off_is_sent_when_its_time_comes(
    connection: Connection, answers: Answers, reconciler: reconcile.Reconciler, sent: Sent
) -> None:
    later = _insert(connection, answers)
    ledger.claim(connection, later)
    ledger.release(connection, later, delay_seconds=60)
    _age(connection, later, 1000)
    reconciler.once(connection)
    assert sent.ids == []

    connection.execute("UPDATE ledger SET not_before = now() WHERE evaluation_id = ANY(%s)", (later,))
    reconciler.once(connection)
    assert sent.ids == later


@pytest.mark.req("F29")
def test_what_is_too_old_expires_instead(
    connection: Connection, answers: Answers, reconciler: reconcile.Reconciler, sent: Sent, settings: Settings
) -> None:
    old = _insert(connection, answers)
    _age(connection, old, settings.expire_seconds + 1)

    report = reconciler.once(connection)

    assert report is not None
    assert report.expired == 1
    assert sent.ids == []


def test_overdue_judgements_are_handed_over(
    connection: Connection, answers: Answers, reconciler: reconcile.Reconciler, settings: Settings, sent: Sent
) -> None:
    late, early = _insert(connection, answers, 2)
    connection.execute(
        "UPDATE ledger SET state = 'judging', judge_deadline = now() - interval '1 second' WHERE evaluation_id = %s",
        (late,),
    )
    connection.execute(
        "UPDATE ledger SET state = 'judging', judge_deadline = now() + interval '1 minute' WHERE evaluation_id = %s",
        (early,),
    )
    handed: list[int] = []

    report = reconcile.Reconciler(settings, sent, handed.extend).once(connection)

    assert report is not None
    assert report.overdue == (late,)
    assert handed == [late]


def test_one_process_at_a_time(
    connect: Callable[[], Connection], connection: Connection, reconciler: reconcile.Reconciler
) -> None:
    other = connect()
    other.autocommit = True
    other.execute("SELECT pg_advisory_lock(%s)", (0x61667263,))

    assert reconciler.once(connection) is None
    other.close()
    # The server needs a moment to notice the closed connection.
    for _ in range(100):
        if reconciler.once(connection) is not None:
            break
        connection.execute("SELECT pg_sleep(0.02)")

    else:
        pytest.fail("the lock of a closed connection is still held")


def test_partitions_are_made_ahead(connection: Connection, reconciler: reconcile.Reconciler) -> None:
    last = partitions.existing(connection)[-1]
    partitions.drop(connection, last)

    first, second = reconciler.once(connection), reconciler.once(connection)

    assert first is not None
    assert first.partitions == (last,)
    assert second is not None
    assert second.partitions == ()


@pytest.mark.req("F13")
def test_the_timer_outlives_a_terminated_backend(
    connection: Connection, answers: Answers, database_url: str, settings: Settings, sent: Sent
) -> None:
    quick = settings.model_copy(update={"reconcile_seconds": 0.05})
    stop = threading.Event()
    thread = threading.Thread(target=reconcile.Reconciler(quick, sent).run, args=(database_url, stop))
    thread.start()
    try:
        first = _insert(connection, answers)
        _age(connection, first, 1000)
        _wait(lambda: first[0] in sent.ids)
        killed = connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE application_name = 'aftercheck-reconcile' AND datname = current_database()"
        ).fetchone()
        assert killed == (1,)
        second = _insert(connection, answers)
        _age(connection, second, 1000)
        _wait(lambda: second[0] in sent.ids)
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


def _wait(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(400):
        if condition():
            return
        pause.wait(0.025)
    pytest.fail("did not happen within 10 s")
