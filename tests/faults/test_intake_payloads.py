"""F25, F26, F30 and the poison rules: bad entries get a named reason and cost nothing else."""

from __future__ import annotations

import hashlib
import json
import random
import zlib

import msgspec
import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction, Trace
from aftercheck_worker.intake.buffer import MAX_LEASES
from aftercheck_worker.intake.keys import GROUP, Keys
from aftercheck_worker.intake.link import Link, as_list
from aftercheck_worker.intake.loop import Intake
from aftercheck_worker.intake.reading import settled
from aftercheck_worker.intake.stream import MAX_DELIVERIES, MAX_TRACE_BYTES
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.extraction import extract
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

DEEP = b"[" * 200_000 + b"]" * 200_000


def around(value: bytes) -> bytes:
    """JSON of a chunk that holds `value`."""
    return b'{"resource":{"a":' + value + b"}}"


REFUSED = {
    "zip bomb": (zlib.compress(bytes(200_000_000), 9), "too_large"),
    "no zlib": (b"\x00\x01garbage", "invalid_compression"),
    "cut zlib": (zlib.compress(around(b"1"))[:-5], "invalid_compression"),
    "depth 200,000": (zlib.compress(around(DEEP)), "too_deep"),
    "depth 1,000": (zlib.compress(around(b"[" * 1000 + b"]" * 1000)), "too_deep"),
    "NaN": (zlib.compress(around(b"NaN")), "invalid_json"),
    "Infinity": (zlib.compress(around(b"-Infinity")), "invalid_json"),
    "1e999": (zlib.compress(around(b"1e999")), "invalid_json"),
    "5,000-digit integer": (zlib.compress(around(b"7" * 5000)), "invalid_json"),
    "empty document": (zlib.compress(b""), "invalid_json"),
    "cut JSON": (zlib.compress(b'{"spans":['), "invalid_json"),
    "wrong types": (zlib.compress(b'{"spans":[{"trace_id":{}}]}'), "invalid_schema"),
    "a list": (zlib.compress(b"[]"), "invalid_schema"),
}


def letters(connection: Connection, mine: Settings) -> dict[str, tuple[str, str, int | None]]:
    """(reason, sha256, kept bytes) by trace id or entry id."""
    rows = connection.execute(
        "SELECT trace_id, entry_id, reason, payload_sha256, length(payload) FROM dead_letter WHERE tenant = %s",
        (mine.tenant,),
    ).fetchall()
    connection.commit()
    return {row[0] or row[1]: (row[2], row[3], row[4]) for row in rows}


def judged(connection: Connection, mine: Settings) -> dict[str, str]:
    rows = connection.execute("SELECT trace_id, state FROM ledger WHERE tenant = %s", (mine.tenant,)).fetchall()
    connection.commit()
    return {row[0]: row[1] for row in rows}


@pytest.mark.req("F25", "F26", "S21")
def test_refused_payloads_reach_a_dead_letter_each_and_good_traces_pass(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    good = [traffic.trace()]
    sent: dict[str, tuple[str, bytes, str]] = {}
    for name, (payload, reason) in REFUSED.items():
        tid = trace_id()
        traffic.send(tid, payload)
        sent[tid] = (name, payload, reason)
        good.append(traffic.trace())

    with intake(mine) as running:
        running.drain()

    found = letters(connection, mine)
    for tid, (name, payload, reason) in sent.items():
        assert found[tid][:2] == (reason, hashlib.sha256(payload).hexdigest()), name
        assert found[tid][2] == len(payload), name
    assert set(judged(connection, mine)) == set(good)
    assert traffic.left() == (0, 0)
    counted = totals(connection, mine.tenant)
    assert counted["traces.rejected"] == len(REFUSED)
    assert sum(n for name, n in counted.items() if name.startswith("rejected.")) == len(REFUSED)
    assert sum(n for name, n in counted.items() if name.startswith("dead_letters.")) == len(REFUSED)


@pytest.mark.req("F25")
def test_ten_megabytes_are_refused_before_anything_is_read(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    huge, lying, good = trace_id(), trace_id(), traffic.trace()
    traffic.send(huge, b"x" * 10_000_000)
    traffic.send(lying, packed([]), size=10_000_000)

    with intake(mine) as running:
        running.drain()

    found = letters(connection, mine)
    assert (found[huge][0], found[lying][0]) == ("too_large", "too_large")
    assert set(judged(connection, mine)) == {good}
    assert traffic.left() == (0, 0)


@pytest.mark.req("F25")
def test_repairable_text_is_repaired_and_judged(mine: Settings, traffic: Traffic, connection: Connection) -> None:
    tid = trace_id()
    spans = whole(tid, "Paris \ud800 is\x00 the capital.")
    spans[0]["attributes"] = {f"key{n}": n for n in range(100_000)}
    text = json.dumps({"spans": spans}).replace('"qa.workflow"', '"one","name":"two"')
    traffic.send(tid, zlib.compress(text.encode()))
    big = trace_id()
    traffic.send(big, packed(whole(big, "x" * 1_000_000)))

    with intake(mine) as running:
        running.drain()

    assert judged(connection, mine) == {tid: "pending", big: "pending"}
    row = connection.execute(
        "SELECT body ->> 'answer' FROM interaction JOIN ledger USING (evaluation_id) WHERE trace_id = %s", (tid,)
    ).fetchone()
    assert row is not None
    assert str(row[0]).startswith("Paris ")
    assert "\x00" not in str(row[0])


@pytest.mark.req("F25", "F30")
def test_garbage_headers_are_dead_letters_and_later_versions_stay(
    mine: Settings, traffic: Traffic, connection: Connection, redis_url: str
) -> None:
    tid = trace_id()
    bad = {
        traffic.raw(["v", "0", "app", "a", "tid", tid], 0): "version_unknown",
        traffic.raw(["nonsense", b"\xff\x00\xfe"], 0): "version_unknown",
        traffic.raw(["v", "1", "app", "", "tid", tid], 0): "header_invalid",
        traffic.raw(["v", "1", "app", "a", "tid", "xyz"], 0): "header_invalid",
        traffic.raw(["v", "1", "app", "a", "tid", tid, "size", "9" * 40], 0): "header_invalid",
        traffic.raw(["v", "1", "app", "a\x1fb\x00", "tid", tid, "k", "nope"], 0): "header_invalid",
        traffic.raw(["v", "1", "app", "a", "tid", tid, "k", "feedback", "p", "junk"], 4): "invalid_compression",
    }
    newer = traffic.raw(["v", "2", "app", "a", "tid", tid, "p", "later"], 5)
    good = traffic.trace()
    keys = Keys(mine.tenant)

    with intake(mine) as running:
        for _ in range(MAX_DELIVERIES + 2):
            running.tick()
            running._take(running._stream.claim(0))
        while judged(connection, mine) != {good: "pending"}:
            running.tick(20)

    reasons = {
        row[0] for row in connection.execute("SELECT entry_id FROM dead_letter WHERE tenant = %s", (mine.tenant,))
    }
    assert reasons == {entry_id.decode() for entry_id in bad}
    for entry_id, reason in bad.items():
        row = connection.execute(
            "SELECT reason FROM dead_letter WHERE tenant = %s AND entry_id = %s", (mine.tenant, entry_id.decode())
        ).fetchone()
        assert row == (reason,)
    assert traffic.left() == (1, 5)
    link = Link(redis_url)
    pending = as_list(link.call("XPENDING", keys.stream, GROUP, "-", "+", 10))
    link.close()
    assert [(as_list(row)[0], as_list(row)[3]) for row in pending] == [(newer, 0)], "nobody has tried it"


@pytest.mark.req("F25")
def test_an_entry_that_nobody_ends_is_poison_and_the_others_are_not(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    """Each `dead` intake reads and dies before its step, as kill -9 would have it."""
    poison, good = trace_id(), traffic.trace()
    traffic.send(poison, packed(whole(poison)))
    with intake(mine) as dead:
        dead._stream.ensure_group()
        assert len(dead._stream.read()) == 2

    for deliveries in range(2, MAX_DELIVERIES + 1):
        with intake(mine) as dead:
            claimed = dead._stream.claim(0)
            assert {entry.deliveries for entry in claimed} == {deliveries}
            assert len(claimed) == (2 if deliveries == 2 else 1)
            mate = [entry for entry in claimed if entry.fields[b"tid"] == good.encode()]
            if deliveries == MAX_DELIVERIES:
                assert mate == claimed, "from the third delivery on, entries go alone, oldest first"
                dead.rates.replace({}, 0.0)
                dead._take(claimed)
    with intake(mine) as dead:
        (alone,) = dead._stream.claim(0)
        assert alone.deliveries == MAX_DELIVERIES
    with intake(mine) as running:
        running.tick()
        running._take(running._stream.claim(0))
        running.drain()

    assert letters(connection, mine)[poison][0] == "poison"
    assert judged(connection, mine) == {good: "pending"}
    assert totals(connection, mine.tenant)["rejected.poison"] == 1


@pytest.mark.req("F25")
def test_a_trace_that_kills_readers_dies_alone(mine: Settings, traffic: Traffic, connection: Connection) -> None:
    quick = mine.model_copy(update={"lease_seconds": 0.001})
    poison = traffic.trace()
    mates = [traffic.trace() for _ in range(3)]
    with intake(quick) as running:
        while running._stand.due < 4:
            running.tick(20)
    for _ in range(2):
        with intake(quick) as dead:
            while not (taken := dead._buffer.lease(10)[1]):
                pass
        assert len(taken) == 4
    saved: list[str] = []
    for _ in range(100):
        with intake(quick, Sent()) as running:
            now, taken = running._buffer.lease(10)
            if not taken:
                continue
            assert len(taken) == 1, "suspects go alone"
            (suspect,) = taken
            if suspect.trace_id == poison and suspect.leases < MAX_LEASES:
                continue  # this process is killed
            reading = running._reader.read(suspect, now)
            if reading.action == "wait":
                continue
            saved.append(suspect.trace_id)
            (stored,) = running._writer.store([reading])
            running._buffer.settle([settled(stored.reading, new=stored.new, known=stored.known)])
            if len(saved) == 4:
                break

    assert sorted(saved) == sorted([poison, *mates])
    assert set(judged(connection, mine)) == set(mates)
    assert letters(connection, mine)[poison][0] == "poison"


@pytest.mark.req("F30")
def test_a_waiting_chunk_of_another_release_is_a_dead_letter(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    tid, alone = traffic.trace(), trace_id()
    keys = Keys(mine.tenant)
    with intake(mine) as running:
        running.tick()
        while running._stand.due == 0:
            running.tick(20)
        traffic.client.hset(keys.trace(tid), b"12345678", b"12345678 not msgpack")
        traffic.client.hset(keys.trace(alone), b"12345678", b"12345678 not msgpack")
        traffic.client.zadd(keys.due, {alone: 1})
        running.drain()

    assert judged(connection, mine) == {tid: "pending"}
    assert {letters(connection, mine)[name][0] for name in (tid, alone)} == {"invalid_schema"}
    assert totals(connection, mine.tenant)["incomplete"] >= 1


@pytest.mark.req("F25")
def test_our_own_bug_costs_one_trace(mine: Settings, traffic: Traffic, connection: Connection) -> None:
    tid, good = traffic.trace(), traffic.trace()

    def buggy(trace: Trace) -> tuple[Interaction, ...]:
        if trace.trace_id == tid:
            raise KeyError("a bug")
        return extract(trace)

    running = Intake(mine, Sent(), extract=buggy, timers=FAST)
    running.drain()
    running.close()

    assert judged(connection, mine) == {good: "pending"}
    assert letters(connection, mine)[tid][0] == "poison"


@pytest.mark.req("F25")
def test_an_answer_that_postgres_refuses_costs_one_trace(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    tid, good = traffic.trace(), [traffic.trace() for _ in range(5)]

    def odd(trace: Trace) -> tuple[Interaction, ...]:
        found = extract(trace)
        if trace.trace_id == tid:
            return tuple(
                msgspec.structs.replace(one, parameters={"n": float("nan"), "x": "9" * 300_000_000}) for one in found
            )
        return found

    running = Intake(mine, Sent(), extract=odd, timers=FAST)
    running.drain()
    running.close()

    assert set(judged(connection, mine)) == set(good)
    assert letters(connection, mine)[tid][0] == "invalid_schema"


@pytest.mark.req("F25")
def test_an_endless_trace_is_cut_and_marked_incomplete(
    mine: Settings, traffic: Traffic, connection: Connection
) -> None:
    tid, root = trace_id(), span_id()
    noise = random.Random(5).randbytes(3_000_000).hex()
    count = MAX_TRACE_BYTES // 3_000_000 + 3
    for _ in range(count):
        traffic.send(tid, packed([span(tid, None, root, noise=noise)]), root=False)
    traffic.send(tid, packed([span(tid, root), answer_span(tid, None, root)]))

    with intake(mine) as running:
        running.drain()

    found = totals(connection, mine.tenant)
    assert found["rejected.too_large"] >= 3
    assert found["incomplete"] == 1
    assert traffic.left() == (0, 0)
