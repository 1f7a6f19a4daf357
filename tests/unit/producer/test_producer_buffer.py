"""The buffer: exact counters in any order of events (I1), whole traces dropped, bounded by bytes and count."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercheck._buffer import Feedback, SpanBuffer

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

SPAN = cast("ReadableSpan", object())


def _balanced(buffer: SpanBuffer) -> bool:
    now = buffer.stats()
    return now.finished == now.not_sampled + now.enqueued + sum(now.dropped.values()) + now.buffered


def _end(buffer: SpanBuffer, trace_id: int, size: int = 100, relevant: bool = True, root: bool = False) -> bool:
    buffer.started(trace_id)
    return buffer.ended(trace_id, size, SPAN, relevant, root)


STEP = st.one_of(
    st.tuples(st.just("end"), st.integers(1, 6), st.integers(1, 700), st.booleans(), st.booleans()),
    st.tuples(st.just("start"), st.integers(1, 6)),
    st.tuples(st.just("skip"), st.integers(1, 6)),
    st.tuples(st.just("feedback"), st.integers(1, 6)),
    st.tuples(st.sampled_from(["drain", "lose", "fail", "abandon", "fork", "report"])),
)


@pytest.mark.req("I1", "P4")
@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, max_size=60))
def test_counters_balance_after_every_step(steps: list[tuple[object, ...]]) -> None:
    buffer = SpanBuffer(max_bytes=1_000, max_spans=5)
    for step in steps:
        _apply(buffer, step)
        assert _balanced(buffer), step
        assert buffer.stats().buffered <= 5
        assert 0 <= buffer.stats().buffered_bytes <= 1_000


def _apply(buffer: SpanBuffer, step: tuple[object, ...]) -> None:
    match step:
        case ("end", int(trace_id), int(size), bool(relevant), bool(root)):
            buffer.ended(trace_id, size, SPAN, relevant, root)
        case ("start", int(trace_id)):
            buffer.started(trace_id)
        case ("skip", int(trace_id)):
            buffer.skipped(trace_id)
        case ("feedback", int(trace_id)):
            buffer.put(Feedback(trace_id, {}), 10)
        case ("drain",):
            for item in buffer.take():
                buffer.settle_sent(1, item.size, buffer.epoch)
        case ("lose",):
            for item in buffer.take():
                buffer.settle_lost(item.trace_id, 1, item.size, "redis_full", buffer.epoch)
        case ("fail",):
            buffer.failed()
        case ("abandon",):
            buffer.abandon("shutdown")
        case ("fork",):
            buffer.after_fork()
        case _:
            buffer.closed_losses()


@pytest.mark.req("P4")
def test_a_trace_without_room_is_lost_as_a_whole() -> None:
    buffer = SpanBuffer(max_bytes=250, max_spans=100)
    buffer.started(1)
    assert _end(buffer, 1)
    assert _end(buffer, 2)
    assert not _end(buffer, 1), "no room"
    assert [item.trace_id for item in buffer.take()] == [1, 2]
    buffer.settle_sent(2, 200, buffer.epoch)
    assert not _end(buffer, 1), "there is room again, but this trace has lost a span"
    assert _end(buffer, 3)
    loss = buffer.loss_of(1)
    assert loss is not None
    assert (loss.reason, loss.spans) == ("buffer_full", 2)
    assert buffer.closed_losses() == [], "a span of the trace is still open"
    buffer.ended(1, 1, SPAN, True, True)
    assert [(trace_id, found.spans) for trace_id, found in buffer.closed_losses()] == [(1, 3)]


def test_the_count_bounds_as_well_as_the_bytes() -> None:
    buffer = SpanBuffer(max_bytes=10**9, max_spans=3)
    assert [_end(buffer, n) for n in range(5)] == [True, True, True, False, False]
    assert buffer.stats().dropped == {"buffer_full": 2}


def test_a_silent_root_is_kept_only_where_its_trace_says_something() -> None:
    buffer = SpanBuffer(10**6, 100)
    buffer.started(1)
    assert not _end(buffer, 1, relevant=False), "an HTTP call inside"
    assert not buffer.ended(1, 10, SPAN, False, True), "a request without any LLM call"
    buffer.started(2)
    assert _end(buffer, 2)
    assert buffer.ended(2, 10, SPAN, False, True)
    assert buffer.stats().not_sampled == 2
    assert not buffer.is_open(2)


@pytest.mark.req("F33")
def test_a_child_starts_from_zero_and_counts_its_copies() -> None:
    buffer = SpanBuffer(10**6, 100)
    _end(buffer, 1)
    _end(buffer, 2)
    buffer.lock.acquire()
    buffer.after_fork()
    now = buffer.stats()
    assert (now.finished, now.buffered, now.dropped) == (2, 0, {"fork": 2})
    assert not buffer.take()


def test_an_answer_after_abandoning_is_not_counted_twice() -> None:
    buffer = SpanBuffer(10**6, 100)
    _end(buffer, 1)
    epoch = buffer.epoch
    buffer.take()
    buffer.abandon("shutdown")
    buffer.settle_sent(1, 100, epoch)
    now = buffer.stats()
    assert (now.enqueued, now.dropped, now.buffered, now.buffered_bytes) == (0, {"shutdown": 1}, 0, 0)


def test_a_closed_buffer_takes_nothing() -> None:
    buffer = SpanBuffer(10**6, 100)
    buffer.closed = True
    assert not _end(buffer, 1)
    assert not buffer.put(Feedback(1, {}), 10)
    assert buffer.stats().dropped == {"shutdown": 2}
    assert _balanced(buffer)


def test_spans_that_never_end_do_not_fill_the_memory() -> None:
    buffer = SpanBuffer(10**6, 100)
    for trace_id in range(1, 12_000):
        buffer.started(trace_id)
    assert not buffer.is_open(1)
    assert buffer.is_open(11_999)
