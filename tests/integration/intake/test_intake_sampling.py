"""Sampling from end to end: shares, weights, changes of the rate, the cold store and feedback."""

from __future__ import annotations

import time

import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_worker.intake.depth import stream_state
from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import Link
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import sampling
from tests.integration.intake.traffic import (
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

pytestmark = pytest.mark.integration
Connection = psycopg.Connection[TupleRow]


def set_rate(connection: Connection, mine: Settings, rate: float, mode: sampling.Mode = "trace") -> None:
    sampling.set_rate(connection, mine.tenant, "shop", rate, mode)
    connection.commit()


def ledger(connection: Connection, mine: Settings) -> dict[str, tuple[str, float, int, str]]:
    """(state, weight, rate_version, origin) by trace."""
    rows = connection.execute(
        "SELECT trace_id, state, weight, rate_version, origin FROM ledger WHERE tenant = %s", (mine.tenant,)
    ).fetchall()
    connection.commit()
    return {row[0]: (row[1], row[2], row[3], row[4]) for row in rows}


@pytest.mark.req("R4", "P9", "R53")
def test_the_rate_of_postgres_decides_and_is_written_down(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    set_rate(connection, mine, 0.9)
    set_rate(connection, mine, 0.25)
    kept, left = [traffic.trace(0.8) for _ in range(3)], [traffic.trace(0.2) for _ in range(5)]

    with intake(mine) as running:
        running.drain()

    assert ledger(connection, mine) == dict.fromkeys(kept, ("pending", 4.0, 2, "production"))
    found = totals(connection, mine.tenant)
    assert (found["sampled"], found["unsampled"], found["received"]) == (3, 5, 8)
    assert left


@pytest.mark.req("R4")
def test_rate_0_evaluates_nothing_and_replay_everything(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    set_rate(connection, mine, 0.0)
    traffic.trace(0.9999)
    replayed = traffic.trace(0.0, origin="replay")

    with intake(mine) as running:
        running.drain()

    assert ledger(connection, mine) == {replayed: ("pending", 1.0, 0, "replay")}


@pytest.mark.req("R4")
def test_development_evaluates_everything_and_says_so(
    mine: Settings, traffic: Traffic, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    import threading

    tid = traffic.trace(0.0)
    caplog.set_level("INFO")
    stopped = threading.Event()
    stopped.set()
    with intake(mine.model_copy(update={"dev": True, "sampling_rate": 0.0})) as running:
        running.drain()
        running.run(stopped)

    assert ledger(connection, mine)[tid][1] == 1.0
    assert "every trace is evaluated" in caplog.text


@pytest.mark.req("R6", "R53")
def test_a_thumbs_down_forces_an_unsampled_trace(
    mine: Settings, traffic: Traffic, connection: Connection, sent: Sent
) -> None:
    set_rate(connection, mine, 0.0)
    tid, other = traffic.trace(0.5), traffic.trace(0.5)

    with intake(mine, sent) as running:
        running.drain()
        assert ledger(connection, mine) == {}
        for _ in range(3):
            traffic.feedback(tid, user_hash="u1", at=5)
        traffic.feedback(other, "up")
        running.drain()

    assert ledger(connection, mine) == {tid: ("pending", 1.0, 1, "forced")}
    assert [high for _, high in sent.messages] == [True]
    found = totals(connection, mine.tenant)
    assert (found["unsampled"], found["forced"], found["feedback.noted"]) == (2, 1, 1)
    assert found["feedback.forced"] == 1
    assert "sampled" not in found
    rows = connection.execute("SELECT value, kind FROM feedback WHERE tenant = %s", (mine.tenant,)).fetchall()
    assert sorted(rows) == [(-1.0, "thumb"), (1.0, "thumb")]


@pytest.mark.req("R6")
def test_feedback_may_come_before_its_trace(mine: Settings, traffic: Traffic, connection: Connection) -> None:
    set_rate(connection, mine, 0.0)
    tid = trace_id(0.5)
    traffic.feedback(tid)

    with intake(mine) as running:
        running.drain()
        traffic.send(tid, packed(whole(tid)))
        running.drain()

    assert ledger(connection, mine)[tid][3] == "forced"
    assert totals(connection, mine.tenant)["feedback.unknown"] == 1


@pytest.mark.req("R6")
def test_feedback_on_a_sampled_trace_changes_nothing(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    tid = traffic.trace()

    with intake(mine) as running:
        running.drain()
        traffic.feedback(tid)
        running.drain()

    assert ledger(connection, mine)[tid][3] == "production"
    assert totals(connection, mine.tenant)["feedback.evaluated"] == 1


@pytest.mark.req("R6")
def test_a_newer_word_of_the_same_user_replaces_an_older_one(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    tid = traffic.trace()
    now = time.time_ns()
    traffic.feedback(tid, "up", user_hash="u", at=now)
    traffic.feedback(tid, "down", user_hash="u", at=now - 1_000_000_000)

    with intake(mine) as running:
        running.drain()

    rows = connection.execute("SELECT value FROM feedback WHERE tenant = %s", (mine.tenant,)).fetchall()
    assert rows == [(1.0,)]


@pytest.mark.req("R6")
def test_beyond_the_byte_cap_the_oldest_go_and_the_answer_is_evicted(
    mine: Settings, traffic: Traffic, connection: Connection, redis_url: str
) -> None:
    set_rate(connection, mine, 0.0)
    small = mine.model_copy(update={"cold_bytes": 20_000})
    link = Link(redis_url)
    first = last = traffic.trace(0.5)
    with intake(small) as running:
        running.drain()
        assert stream_state(link, mine.tenant).cold_horizon == pytest.approx(time.time(), abs=30)
        for _ in range(10):
            last = [traffic.trace(0.5) for _ in range(5)][-1]
            running.drain()
        traffic.feedback(first)
        traffic.feedback(last)
        running.drain()
    state = stream_state(link, mine.tenant)
    horizon = link.call("GET", Keys(mine.tenant).cold_horizon)
    link.close()

    found = totals(connection, mine.tenant)
    assert set(ledger(connection, mine)) == {last}
    assert (found["feedback.evicted"], found["feedback.forced"]) == (1, 1)
    assert 0 < state.cold_bytes <= 20_000
    assert state.cold_horizon is not None
    assert horizon is not None
    assert 0 < found["cold_evicted"] < 51


@pytest.mark.req("R6")
def test_cold_traces_go_after_their_hours(
    mine: Settings, traffic: Traffic, connection: Connection, redis_url: str
) -> None:
    set_rate(connection, mine, 0.0)
    link = Link(redis_url)
    traffic.trace(0.5)
    with intake(mine) as running:
        running.drain()
    assert stream_state(link, mine.tenant).cold_bytes > 0
    with intake(mine.model_copy(update={"cold_hours": 0.0})) as running:
        time.sleep(0.002)  # the bucket's age is counted in milliseconds
        running._at["evict"] = 0.0
        running.tick()

    assert stream_state(link, mine.tenant).cold_bytes == 0
    assert stream_state(link, mine.tenant).cold_horizon is None
    link.close()


@pytest.mark.req("P9")
def test_after_a_raise_a_trace_is_whole(mine: Settings, traffic: Traffic, connection: Connection) -> None:
    """Its first chunk went cold under the old rate, the second passes under the new one."""
    set_rate(connection, mine, 0.1)
    tid, root = trace_id(0.5), span_id()
    traffic.send(tid, packed([answer_span(tid, None, root)]), root=False)

    with intake(mine) as running:
        running.drain()
        set_rate(connection, mine, 1.0)
        traffic.send(tid, packed([span(tid, root)]))
        running.drain()

    assert ledger(connection, mine)[tid][:3] == ("pending", 1.0, 2)


@pytest.mark.req("P9")
def test_after_a_drop_an_undecided_trace_follows_the_new_rate_as_a_whole(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    set_rate(connection, mine, 1.0)
    tid, root = trace_id(0.5), span_id()
    slow = mine.model_copy(update={"idle_seconds": 60.0, "max_wait_seconds": 60.0})
    traffic.send(tid, packed([answer_span(tid, None, root)]), root=False)

    with intake(slow) as running:
        while running.tick():
            pass
        set_rate(connection, mine, 0.1)
        traffic.send(tid, packed([span(tid, root)]))
        running.drain()
        assert ledger(connection, mine) == {}
        traffic.feedback(tid)
        running.drain()

    assert ledger(connection, mine)[tid][3] == "forced"


@pytest.mark.req("R30")
def test_session_mode_keeps_all_traces_of_a_session(mine: Settings, traffic: Traffic, connection: Connection) -> None:
    set_rate(connection, mine, 0.5, "session")
    by_session: dict[str, list[str]] = {}
    for number in range(8):
        session = f"session-{number}"
        for _ in range(3):
            tid = trace_id(0.1 * number)
            traffic.send(tid, packed(whole(tid)), session_id=session)
            by_session.setdefault(session, []).append(tid)

    with intake(mine) as running:
        running.drain()

    kept = ledger(connection, mine)
    shares = {sum(tid in kept for tid in traces) for traces in by_session.values()}
    assert shares == {0, 3}
