"""The shipper's thread in this process, against a real Valkey: parts of traces, losses, shutdown, broken parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import pytest
import redis
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from aftercheck import _entries, _guard, _sender, _settings
from aftercheck._buffer import SpanBuffer
from aftercheck._processor import Processor
from aftercheck._shipper import Shipper
from aftercheck_schemas import EntryHeader, decode_entry, stream_key
from aftercheck_schemas.wire import drops_field, drops_key

pytestmark = pytest.mark.integration


class Client:
    """A provider with our processor, outside the process-wide client."""

    def __init__(self, url: str, **changes: object) -> None:
        base = replace(_settings.load("demo", redis_url=url, env={}), tick_s=0.02, hold_s=0.1)
        self.settings = replace(base, **changes)  # type: ignore[arg-type]
        self.buffer = SpanBuffer(self.settings.max_buffer_bytes, self.settings.max_buffer_spans)
        self.shipper = Shipper(self.settings, self.buffer)
        self.processor = Processor(self.buffer, self.shipper)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(self.processor)
        self.tracer = provider.get_tracer("app")

    @contextmanager
    def span(self, name: str = "openai.chat", text: str = "[]") -> Generator[trace.Span]:
        with self.tracer.start_as_current_span(name) as span:
            span.set_attribute("gen_ai.output.messages", text)
            yield span

    def call(self, text: str = "[]") -> None:
        with self.span(text=text):
            pass

    def balanced(self) -> bool:
        s = self.buffer.stats()
        return s.finished == s.not_sampled + s.enqueued + sum(s.dropped.values()) + s.buffered


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    _guard.forget_warnings()
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        yield client


def headers(server: redis.Redis) -> list[EntryHeader]:
    raw = cast("list[tuple[bytes, dict[bytes, bytes]]]", server.xrange(stream_key()))
    return [decode_entry(fields)[0] for _, fields in raw]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not condition():
        assert time.monotonic() < deadline, "gave up after 15 s"
        time.sleep(0.01)


@pytest.mark.req("R1")
def test_a_finished_trace_goes_at_the_next_tick_and_an_open_one_in_parts(server: redis.Redis, redis_url: str) -> None:
    client = Client(redis_url)
    client.call()
    until(lambda: len(headers(server)) == 1)
    with client.span("request"):
        client.call()
        until(lambda: len(headers(server)) == 2)
    until(lambda: len(headers(server)) == 3)
    whole, part, rest = headers(server)
    assert (whole.root, whole.local_complete) == (True, True)
    assert (part.root, part.local_complete) == (False, False)
    assert (rest.root, rest.local_complete) == (True, True)
    assert client.balanced()
    client.processor.shutdown()


@pytest.mark.req("P4", "I1")
def test_losses_of_every_kind_are_counted_and_told(server: redis.Redis, redis_url: str) -> None:
    client = Client(redis_url, max_buffer_bytes=2**20, max_payload_bytes=10_000, max_text_chars=400_000)
    client.call("word " * 60_000)
    client.call("x" * 1_200_000)
    client.processor.force_flush()
    until(lambda: client.buffer.stats().buffered == 0 and len(headers(server)) == 2)
    assert client.buffer.stats().dropped == {"payload_too_large": 1, "buffer_full": 1}
    assert sorted(h.drop_reason for h in headers(server)) == ["buffer_full", "payload_too_large"]
    assert all((h.dropped, h.size) == (1, 0) for h in headers(server))
    assert client.balanced()
    client.processor.shutdown()


@pytest.mark.req("P4", "F08")
def test_full_streams_refuse_spans_and_feedback(server: redis.Redis, redis_url: str) -> None:
    from aftercheck._buffer import Feedback

    client = Client(redis_url, max_stream_bytes=10)
    client.call()
    client.buffer.put(Feedback(5, {"value": "up"}), 100)
    result = client.shipper.report(10)
    assert result.dropped == {"redis_full": 2}
    assert headers(server) == []
    assert client.balanced()
    told = {drops_field("demo", "redis_full").encode(): b"1"}  # a feedback is no trace
    assert server.hgetall(drops_key()) == told
    client.call()
    client.shipper.report(10)
    assert server.hgetall(drops_key()) == dict.fromkeys(told, b"2")
    client.processor.shutdown()


@pytest.mark.req("P4", "F08")
def test_the_count_of_refused_traces_waits_for_a_redis_that_takes_it(server: redis.Redis, redis_url: str) -> None:
    client = Client(redis_url, max_stream_bytes=10)
    server.set(drops_key(), "in the way")  # a wrong type, so that counting fails and nothing else
    client.call()
    assert client.shipper.report(10).dropped == {"redis_full": 1}
    server.delete(drops_key())
    client.shipper.flush(10)
    client.call()
    client.shipper.flush(10)
    assert server.hgetall(drops_key()) == {drops_field("demo", "redis_full").encode(): b"2"}
    client.processor.shutdown()


@pytest.mark.req("P3", "P4")
def test_a_shutdown_without_redis_counts_what_is_left() -> None:
    client = Client("redis://127.0.0.1:1/0", shutdown_timeout_s=0.2)
    for _ in range(5):
        client.call()
    client.processor.shutdown()
    client.processor.shutdown()
    client.call()
    stats = client.buffer.stats()
    assert stats.dropped == {"shutdown": 6}
    assert stats.last_error
    assert stats.buffered_bytes == 0
    assert client.balanced()


@pytest.mark.req("P1")
@pytest.mark.parametrize("error", [RuntimeError("ours"), SystemExit(1)], ids=["error", "exit"])
def test_an_error_of_ours_in_the_thread_costs_one_cycle(
    error: BaseException, server: redis.Redis, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(redis_url)

    def broken(*_: object) -> list[str]:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(_sender.RedisSender, "send", broken)
        client.call()
        until(lambda: client.buffer.stats().dropped == {"internal_error": 1})
    client.call()
    assert client.shipper.report(10).flushed == 1
    assert client.balanced()
    client.processor.shutdown()


@pytest.mark.req("P1", "S04")
def test_a_broken_installation_turns_the_producer_off(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(redis_url)

    def broken(*_: object) -> None:
        raise ImportError("no module named redis")

    monkeypatch.setattr(_entries.EntryWriter, "__init__", broken)
    client.call()
    until(lambda: client.buffer.stats().dropped == {"internal_error": 1})
    assert "ImportError" in client.buffer.stats().last_error
    client.call()
    assert client.shipper.flush(1) == 0
    assert client.balanced()


@pytest.mark.req("P1")
def test_wrong_type_of_key_is_an_outage_with_a_reason(server: redis.Redis, redis_url: str) -> None:
    server.set(stream_key(), "not a stream")
    client = Client(redis_url)
    client.call()
    client.shipper.flush(10)
    assert "WRONGTYPE" in client.buffer.stats().last_error or "ResponseError" in client.buffer.stats().last_error
    server.delete(stream_key())
    assert client.shipper.flush(10) == 0
    assert len(headers(server)) == 1
    client.processor.shutdown()
