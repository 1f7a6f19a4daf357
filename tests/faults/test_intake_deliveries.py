"""F27, F28, F36, F11, F08 and kill points: nothing is lost, nothing is counted twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

import psycopg
import pytest
from psycopg.rows import TupleRow
from pydantic import SecretStr

from aftercheck_worker.intake import counters
from aftercheck_worker.intake.buffer import Leased
from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import Link, LinkError
from aftercheck_worker.intake.loop import Intake
from aftercheck_worker.intake.reading import Reading
from aftercheck_worker.intake.stream import Move, Stand
from aftercheck_worker.intake.writer import Stored
from aftercheck_worker.settings import Settings
from tests.faults.proxy import FaultProxy
from tests.integration.intake.traffic import (
    FAST,
    Sent,
    Traffic,
    answer_span,
    intake,
    packed,
    span,
    span_id,
    totals,
    trace_id,
    whole,
)

pytestmark = pytest.mark.faults
Connection = psycopg.Connection[TupleRow]


class Killed(BaseException):
    """Stands for kill -9 at one place: nothing after it runs."""


def states(connection: Connection, mine: Settings) -> dict[str, str]:
    rows = connection.execute("SELECT trace_id, state FROM ledger WHERE tenant = %s", (mine.tenant,)).fetchall()
    connection.commit()
    assert len(rows) == len({row[0] for row in rows})
    return {row[0]: row[1] for row in rows}


def answers(connection: Connection, tid: str) -> list[str]:
    rows = connection.execute(
        "SELECT body ->> 'answer' FROM interaction JOIN ledger USING (evaluation_id) WHERE trace_id = %s", (tid,)
    ).fetchall()
    connection.commit()
    return [str(row[0]) for row in rows]


def until(condition: Callable[[], bool], running: Intake, timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        running.tick(20)


@pytest.mark.req("F27")
def test_each_entry_five_times_on_two_intakes_is_one_answer(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    tids = [trace_id() for _ in range(40)]
    payloads = {tid: packed(whole(tid)) for tid in tids}
    for _ in range(5):
        for tid in tids:
            traffic.send(tid, payloads[tid])
    sent, failures = Sent(), list[BaseException]()

    def work() -> None:
        try:
            with intake(mine, sent) as running:
                running.drain()
        except BaseException as error:  # noqa: BLE001 - shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failures == []
    assert states(connection, mine) == dict.fromkeys(tids, "pending")
    assert sorted(sent.ids) == sorted(set(sent.ids))
    assert len(sent.ids) == 40
    found = totals(connection, mine.tenant)
    assert found["received"] == 200 == found["entries.held"] + found["entries.duplicate"]
    assert (found["sampled"], found["traces.answered"]) == (40, 40)


@pytest.mark.req("F27")
def test_a_trace_sent_again_much_later_is_known(
    mine: Settings, traffic: Traffic, connection: Connection, sent: Sent
) -> None:
    tid = traffic.trace()
    with intake(mine, sent) as running:
        running.drain()
        traffic.client.delete(Keys(mine.tenant).trace(tid))  # its minute of memory is over
        connection.execute("UPDATE ledger SET created_at = now() - interval '2 minutes' WHERE trace_id = %s", (tid,))
        connection.commit()
        traffic.send(tid, packed([answer_span(tid, answers_span(connection, tid))]))
        running.drain()

    assert len(sent.ids) == 1
    found = totals(connection, mine.tenant)
    assert (found["sampled"], found["traces.repeated"]) == (1, 1)


def answers_span(connection: Connection, tid: str) -> str:
    row = connection.execute("SELECT span_id FROM ledger WHERE trace_id = %s", (tid,)).fetchone()
    connection.commit()
    assert row is not None
    return str(row[0])


@pytest.mark.req("F28")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_chunks_in_any_order_are_one_trace(
    mine: Settings, traffic: Traffic, connection: Connection, order: tuple[int, ...]
) -> None:
    tid = trace_id()
    spans = whole(tid)
    for place in order:
        traffic.send(tid, packed([spans[place]]), root=place == 0, local_complete=place == 0)

    with intake(mine) as running:
        running.drain()

    assert answers(connection, tid) == ["Paris."]
    row = connection.execute(
        "SELECT body -> 'passages' -> 0 ->> 'text', coalesce(body ->> 'complete', 'true')"
        " FROM interaction JOIN ledger USING (evaluation_id) WHERE trace_id = %s",
        (tid,),
    ).fetchone()
    assert row == ("Paris is the capital of France.", "true")


@pytest.mark.req("F28")
def test_a_missing_root_is_read_after_idle_and_incomplete(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    tid = trace_id()
    traffic.send(tid, packed([answer_span(tid, None, span_id())]), root=False, local_complete=False)

    with intake(mine) as running:
        running.drain()

    row = connection.execute(
        "SELECT body ->> 'complete' FROM interaction JOIN ledger USING (evaluation_id) WHERE trace_id = %s", (tid,)
    ).fetchone()
    assert row == ("false",)
    assert totals(connection, mine.tenant)["incomplete"] == 1


@pytest.mark.req("F28")
def test_late_spans_reopen_a_pending_trace_and_are_counted_after_that(
    mine: Settings, traffic: Traffic, connection: Connection, sent: Sent
) -> None:
    tid, root, call = trace_id(), span_id(), span_id()
    first = answer_span(tid, call, root, "Par")
    better = {**answer_span(tid, call, root, "Paris, of course."), "events": [{"name": "more"}]}
    traffic.send(tid, packed([span(tid, root), first]))
    with intake(mine, sent) as running:
        running.drain()
        assert answers(connection, tid) == ["Par"]
        traffic.send(tid, packed([better]), root=False)
        running.drain()
        assert answers(connection, tid) == ["Paris, of course."]
        connection.execute("UPDATE ledger SET state = 'checking', attempts = 1 WHERE trace_id = %s", (tid,))
        connection.commit()
        traffic.send(tid, packed([span(tid, None, root), span(tid, None, root)]), root=False)
        running.drain()
        traffic.send(tid, packed([better]), root=False)
        running.drain()

    assert answers(connection, tid) == ["Paris, of course."]
    found = totals(connection, mine.tenant)
    assert (found["sampled"], found["late_spans"]) == (1, 2)
    assert set(sent.ids) == {sent.ids[0]}


@pytest.mark.req("P4")
def test_a_trace_that_the_producer_lost_is_counted_by_reason(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    tid, partly = trace_id(), trace_id()
    traffic.send(tid, b"", root=False, dropped=3, drop_reason="buffer_full")
    traffic.send(partly, packed(whole(partly)))
    traffic.send(partly, b"", root=False, dropped=2, drop_reason="redis_full")

    with intake(mine) as running:
        running.drain()

    found = totals(connection, mine.tenant)
    assert (found["dropped.buffer_full"], found["dropped.redis_full"], found["traces.empty"]) == (1, 1, 1)
    row = connection.execute(
        "SELECT body ->> 'complete' FROM interaction JOIN ledger USING (evaluation_id) WHERE trace_id = %s", (partly,)
    ).fetchone()
    assert row == ("false",)


@pytest.mark.req("F36")
def test_a_wipe_at_run_time_does_not_stop_it(
    mine: Settings, traffic: Traffic, connection: Connection, sent: Sent
) -> None:
    before = traffic.trace()
    stop = threading.Event()
    made = Intake(mine, sent, timers=FAST)
    thread = threading.Thread(target=made.run, args=(stop,))
    thread.start()
    try:
        _poll(lambda: before in states(connection, mine))
        traffic.client.flushall()
        traffic.client.script_flush()
        after = traffic.trace()
        _poll(lambda: after in states(connection, mine))
    finally:
        stop.set()
        thread.join(20)

    assert not thread.is_alive()
    assert states(connection, mine)[before] == "pending"


def _poll(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.req("F11", "F13")
@pytest.mark.parametrize("mode", ["down", "reset"])
def test_postgres_away_delays_and_loses_nothing(
    mine: Settings, traffic: Traffic, connection: Connection, database_url: str, sent: Sent, mode: str
) -> None:
    info = connection.info
    with FaultProxy(info.host, info.port) as proxy:
        url = database_url.replace(f":{info.port}/", f":{proxy.port}/")
        assert url != database_url
        behind = mine.model_copy(update={"database_url": SecretStr(url)})
        with intake(behind, sent) as running:
            first = traffic.trace()
            running.drain()
            proxy.set("down" if mode == "down" else "reset")
            tids = [traffic.trace() for _ in range(5)]
            bad = trace_id()
            traffic.raw(["v", "1", "app", "a", "tid", bad, "k", "nope", "p", "xy"], 2)
            for _ in range(20):
                running.tick(10)
            assert traffic.left() == (1, 2), "good entries go on, the dead letter waits for Postgres"
            proxy.set("ok")
            until(lambda: len(states(connection, mine)) == 6, running)
            running.drain()

    assert set(states(connection, mine)) == {first, *tids}
    found = totals(connection, mine.tenant)
    assert found["sampled"] == 6
    assert found["dead_letters.header_invalid"] == 1
    assert traffic.left() == (0, 0)


@pytest.mark.req("F11")
def test_with_too_much_waiting_the_stream_fills_instead(
    mine: Settings, traffic: Traffic, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres is away for long: what waits is bounded by bytes, the rest stays where admission counts it."""
    tight = mine.model_copy(update={"stream_max_bytes": 3_000})

    def nothing(limit: int) -> tuple[float, list[Leased]]:
        assert limit > 0
        return 0.0, []

    with intake(tight) as running:
        running.tick()
        with monkeypatch.context() as away:
            away.setattr(running._buffer, "lease", nothing)
            for _ in range(20):
                traffic.trace()
                running.tick(5)
            left = traffic.left()
        running.drain()

    assert 0 < left[0] < 20
    assert len(states(connection, mine)) == 20
    assert int(cast("bytes", traffic.client.get(Keys(mine.tenant).prefix + "held:bytes"))) == 0


@pytest.mark.req("F06")
def test_a_broker_away_costs_nothing(mine: Settings, traffic: Traffic, connection: Connection, sent: Sent) -> None:
    sent.broken = True
    tid = traffic.trace()

    with intake(mine, sent) as running:
        running.drain()

    assert states(connection, mine) == {tid: "pending"}


@pytest.mark.req("F06", "F07")
@pytest.mark.parametrize("mode", ["down", "reset", "blackhole"])
def test_redis_away_delays_and_loses_nothing(
    mine: Settings, traffic: Traffic, connection: Connection, redis_url: str, sent: Sent, mode: str
) -> None:
    port = int(redis_url.rsplit(":", 1)[1].split("/")[0])
    with FaultProxy("127.0.0.1", port) as proxy:
        url = redis_url.replace(f":{port}", f":{proxy.port}")
        made = Intake(mine.model_copy(update={"redis_url": SecretStr(url)}), sent, timers=FAST)
        stop = threading.Event()
        thread = threading.Thread(target=made.run, args=(stop,))
        thread.start()
        try:
            first = traffic.trace()
            _poll(lambda: first in states(connection, mine))
            proxy.set(cast("object", mode))  # type: ignore[arg-type]
            tids = [traffic.trace() for _ in range(20)]
            proxy.set("ok")
            _poll(lambda: len(states(connection, mine)) == 21, 40.0)
        finally:
            stop.set()
            thread.join(30)

    assert set(states(connection, mine)) == {first, *tids}
    assert len(sent.ids) == len(set(sent.ids)) == 21


@pytest.mark.req("F08")
def test_a_full_redis_is_drained(mine: Settings, traffic: Traffic, connection: Connection) -> None:
    tids = [traffic.trace() for _ in range(50)]
    cold = mine.model_copy(update={"sampling_rate": 1.0})
    with intake(cold) as running:
        running._stream.ensure_group()
        traffic.client.config_set("maxmemory", "1mb")
        try:
            until(lambda: traffic.left()[0] == 0, running)
        finally:
            traffic.client.config_set("maxmemory", "0")
        running.drain()

    assert set(states(connection, mine)) == set(tids)
    assert traffic.left() == (0, 0)


POINTS = ("read", "step", "lease", "store", "send", "settle")


@pytest.mark.req("F01", "F27")
@pytest.mark.parametrize("point", POINTS)
def test_killed_before_or_after_any_step(
    mine: Settings, traffic: Traffic, connection: Connection, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends right after the effect of `point`; another one takes over. Counts are exact."""
    quick = mine.model_copy(update={"lease_seconds": 0.2})
    tids = [traffic.trace() for _ in range(10)]
    dead = Intake(quick, Sent(), timers=FAST)
    owner, name = {
        "read": (dead._stream, "read"),
        "step": (dead._stream, "step"),
        "lease": (dead._buffer, "lease"),
        "store": (dead._writer, "store"),
        "send": (dead, "_send"),
        "settle": (dead._buffer, "settle"),
    }[point]
    real = getattr(owner, name)

    def dying(*arguments: object) -> object:
        result = real(*arguments)
        if result or point in ("send", "store", "settle"):
            raise Killed
        return result

    monkeypatch.setattr(owner, name, dying)
    deadline = time.monotonic() + 20
    with pytest.raises(Killed):
        until(lambda: time.monotonic() > deadline, dead, 30)
    dead._link.close()
    dead._postgres.close()

    survivor = Sent()
    with intake(quick, survivor) as running:
        running.tick()
        running._take(running._stream.claim(0))
        running.drain()

    assert states(connection, mine) == dict.fromkeys(tids, "pending")
    found = totals(connection, mine.tenant)
    assert found["received"] == found["entries.held"] == 10
    assert (found["sampled"], found["traces.answered"]) == (10, 10)
    if point in ("store", "send"):
        assert len(set(survivor.ids)) == 10, "committed and not sent: sent by the next one"
    assert traffic.left() == (0, 0)


@pytest.mark.req("I8")
@pytest.mark.parametrize("after", ["before the commit", "after the commit", "nothing"])
def test_counters_move_exactly_once(
    mine: Settings, traffic: Traffic, connection: Connection, redis_url: str, after: str
) -> None:
    link, keys = Link(redis_url), Keys(mine.tenant)
    for _ in range(7):
        traffic.trace()
    with intake(mine) as running:
        while running._left():
            running.tick(20)

        def dying(stamp: int, counted: Mapping[tuple[str, str, str], int]) -> None:
            if after != "before the commit":
                running._writer.add(stamp, counted)
            if after != "nothing":
                raise Killed

        if after == "nothing":
            counters.flush(link, keys, dying)
        else:
            with pytest.raises(Killed):
                counters.flush(link, keys, dying)
        traffic.trace()
        running.drain()
        while counters.flush(link, keys, running._writer.add):
            pass
    link.close()

    found = totals(connection, mine.tenant)
    assert found["received"] == found["sampled"] == 8


def test_two_flushes_of_one_set_count_once(
    mine: Settings, traffic: Traffic, connection: Connection, redis_url: str
) -> None:
    """One intake is slow between Redis and Postgres; another one moves the same set and a newer one meanwhile."""
    link, keys = Link(redis_url), Keys(mine.tenant)
    traffic.trace()
    with intake(mine) as running:
        while running._left():
            running.tick(20)

        def slow(stamp: int, counted: Mapping[tuple[str, str, str], int]) -> None:
            assert counters.flush(link, keys, running._writer.add)
            traffic.trace()
            running.drain()
            running._writer.add(stamp, counted)

        counters.flush(link, keys, slow)
        running.drain()
    link.close()

    assert totals(connection, mine.tenant)["received"] == 2


@pytest.mark.req("F28")
def test_a_chunk_that_comes_while_its_trace_is_read_is_not_lost(
    mine: Settings, traffic: Traffic, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    tid, root = trace_id(), span_id()
    traffic.send(tid, packed([span(tid, root), answer_span(tid, None, root, "One.")]))
    with intake(mine) as running, intake(mine) as other:
        real, came = running._writer.store, list[int]()

        def slow(readings: Sequence[Reading]) -> list[Stored]:
            stored = real(readings)
            if stored and not came:
                came.append(1)
                traffic.send(tid, packed([answer_span(tid, None, root, "Two.")]), root=False)
                other.rates.replace({}, 0.0)
                assert other._take(other._stream.read()) == 1
            return stored

        monkeypatch.setattr(running._writer, "store", slow)
        running.drain()

    assert sorted(answers(connection, tid)) == ["One.", "Two."]
    found = totals(connection, mine.tenant)
    assert (found["sampled"], found["traces.answered"], found["received"]) == (1, 1, 2)


@pytest.mark.req("F27")
def test_two_holders_of_the_same_entries_count_them_once(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    """A slow intake steps after another one has claimed and stepped its entries."""
    half = mine.model_copy(update={"sampling_rate": 0.5})
    for draw in (0.9, 0.1):
        traffic.trace(draw)
    with intake(half) as slow, intake(half) as other:
        slow.tick()
        other.tick()
        for draw in (0.9, 0.1, 0.9):
            traffic.trace(draw)
        held = slow._stream.read()
        traffic.trace(0.9)
        assert len(held) == 3
        assert other._take(other._stream.claim(0)) == 3
        left = traffic.left()
        assert slow._take(held) == 0
        assert traffic.left() == left
        assert left[1] > 0
        other.drain()

    found = totals(connection, mine.tenant)
    assert found["received"] == 6
    assert (found["sampled"], found["unsampled"]) == (4, 2)


def test_a_lost_reply_of_a_step_changes_nothing(
    mine: Settings, traffic: Traffic, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    tids = [traffic.trace() for _ in range(5)]
    with intake(mine) as running:
        real, failed = running._stream.step, list[Stand]()

        def lossy(moves: Iterable[Move]) -> Stand:
            stand = real(moves)
            if stand.moved and not failed:
                failed.append(stand)
                raise ConnectionResetError("reply lost") from None
            return stand

        monkeypatch.setattr(running._stream, "step", lossy)
        with pytest.raises(ConnectionResetError):
            until(lambda: bool(failed), running)
        running._recover = True
        running.drain()

    assert set(states(connection, mine)) == set(tids)
    assert totals(connection, mine.tenant)["received"] == 5
    assert issubclass(LinkError, Exception)
