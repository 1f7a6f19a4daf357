"""The producer against a real Valkey, in processes of its own: every way to hook in, fork, exit, exact counters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
import redis

from aftercheck_schemas import Chunk, EntryHeader, decode_entry, stream_key
from aftercheck_schemas.wire import bytes_key

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

PRELUDE = """
import json, os, sys, logging
import aftercheck
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
def call(name="openai.chat"):
    with trace.get_tracer("app").start_as_current_span(name) as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.output.messages", "[]")
def say(**values):
    print(json.dumps(values), flush=True)
def own_provider():
    trace.set_tracer_provider(TracerProvider())
"""
OPENAI = """
import httpx, openai
def answer(request):
    message = {"role": "assistant", "content": "Paris"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return httpx.Response(200, json=body)
client = openai.OpenAI(api_key="x", http_client=httpx.Client(transport=httpx.MockTransport(answer)))
def ask(text="What is the capital?"):
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
"""


@pytest.fixture
def stream(redis_url: str) -> Iterator[redis.Redis]:
    """Valkey with an empty stream."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        yield client


def run(code: str, url: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "AFTERCHECK_REDIS_URL": url, "PYTHONWARNINGS": "ignore", **environ}
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done


def said(done: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def entries(client: redis.Redis) -> list[tuple[EntryHeader, Chunk | None]]:
    raw = cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(stream_key()))
    found: list[tuple[EntryHeader, Chunk | None]] = []
    size = 0
    for _, fields in raw:
        header, payload = decode_entry(fields)
        size += len(payload)
        chunk = (
            msgspec.json.decode(zlib.decompress(payload), type=Chunk) if payload and header.kind == "span" else None
        )
        found.append((header, chunk))
    assert int(cast("bytes", client.get(bytes_key()) or b"0")) == size
    return found


@pytest.mark.req("R1", "I1", "P4", "P5")
def test_flush_delivers_and_tells(stream: redis.Redis, redis_url: str) -> None:
    done = run(
        """
own_provider(); aftercheck.init("demo", environment="test", strict=True)
for _ in range(50): call()
with trace.get_tracer("app").start_as_current_span("request"):
    call(); trace_id = aftercheck.current_trace_id()
aftercheck.feedback(trace_id, "down")
first, second = aftercheck.flush(), aftercheck.flush()
s = aftercheck.stats()
say(first=first._asdict(), second=second._asdict(), stats=s._asdict(),
    balance=s.finished - s.not_sampled - s.enqueued - sum(s.dropped.values()) - s.buffered)
""",
        redis_url,
    )
    (told,) = said(done)
    assert told["first"] == {"flushed": 53, "left": 0, "dropped": {}}
    assert told["second"] == {"flushed": 0, "left": 0, "dropped": {}}
    assert told["balance"] == 0
    found = entries(stream)
    chunks = [(header, chunk) for header, chunk in found if chunk is not None]
    assert len(chunks) == 51
    assert sum(len(chunk.spans) for _, chunk in chunks) == 52
    assert all(h.root and h.local_complete and (h.app, h.environment) == ("demo", "test") for h, _ in chunks)
    assert [header.kind for header, chunk in found if chunk is None] == ["feedback"]


@pytest.mark.req("R1")
@pytest.mark.parametrize("imported", ["before", "after"])
def test_one_call_on_top_of_openllmetry_and_nothing_printed(
    stream: redis.Redis, redis_url: str, imported: str
) -> None:
    pytest.importorskip("traceloop.sdk", reason="extra [traceloop]")
    start = 'aftercheck.init("finance-rag", strict=True)\naftercheck.init("finance-rag")\n'
    code = OPENAI + start if imported == "before" else start + OPENAI
    done = run(code + "ask('Who is jan@example.com?')", redis_url)
    assert done.stdout == ""
    ((header, chunk),) = entries(stream)
    assert header.app == "finance-rag"
    assert chunk is not None
    attributes = chunk.spans[0].attributes
    assert "<EMAIL_" in cast("str", attributes["gen_ai.input.messages"])
    assert "Paris" in cast("str", attributes["gen_ai.output.messages"])


def test_images_are_uploaded_nowhere_and_the_input_stays(stream: redis.Redis, redis_url: str) -> None:
    pytest.importorskip("traceloop.sdk", reason="extra [traceloop]")
    code = """
import base64
aftercheck.init("demo", strict=True)
url = "data:image/png;base64," + base64.b64encode(bytes(2000)).decode()
ask([{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}])
"""
    run(OPENAI + code, redis_url, TRACELOOP_BASE_URL="http://127.0.0.1:9", OTEL_BSP_EXPORT_TIMEOUT="100")
    ((_, chunk),) = entries(stream)
    assert chunk is not None
    assert "What is this?" in cast("str", chunk.spans[0].attributes["gen_ai.input.messages"])


@pytest.mark.req("R1")
def test_a_configured_exporter_stays_beside_ours(stream: redis.Redis, redis_url: str) -> None:
    pytest.importorskip("traceloop.sdk", reason="extra [traceloop]")
    code = """
import http.server, threading
class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        say(path=self.path, key=self.headers["Authorization"], named=b"openai.chat" in body or len(body) > 0)
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["TRACELOOP_BASE_URL"] = f"http://127.0.0.1:{server.server_port}"
os.environ["TRACELOOP_API_KEY"] = "key-1"
aftercheck.init("demo", strict=True)
ask()
trace.get_tracer_provider().force_flush()
"""
    told = said(run(OPENAI + code, redis_url))
    assert [(t["path"], t["key"]) for t in told] == [("/v1/traces", "Bearer key-1")]
    assert len(entries(stream)) == 1


def test_an_existing_provider_is_used_and_its_exporter_kept(stream: redis.Redis, redis_url: str) -> None:
    done = run(
        """
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
memory = InMemorySpanExporter()
provider = TracerProvider(); provider.add_span_processor(SimpleSpanProcessor(memory))
trace.set_tracer_provider(provider)
aftercheck.init("demo", strict=True); call()
say(same=trace.get_tracer_provider() is provider, theirs=len(memory.get_finished_spans()))
""",
        redis_url,
    )
    assert said(done) == [{"same": True, "theirs": 1}]
    assert len(entries(stream)) == 1


@pytest.mark.req("R1")
def test_a_running_traceloop_is_joined(stream: redis.Redis, redis_url: str) -> None:
    pytest.importorskip("traceloop.sdk", reason="extra [traceloop]")
    code = """
import contextlib, io
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from traceloop.sdk import Traceloop
from traceloop.sdk.instruments import Instruments
memory = InMemorySpanExporter()
with contextlib.redirect_stdout(io.StringIO()):
    Traceloop.init(app_name="theirs", exporter=memory, disable_batch=True, instruments={Instruments.OPENAI})
aftercheck.init("demo", strict=True); ask()
say(theirs=len(memory.get_finished_spans()))
"""
    assert said(run(OPENAI + code, redis_url)) == [{"theirs": 1}]
    ((header, chunk),) = entries(stream)
    assert header.app == "demo"
    assert chunk is not None
    assert "Paris" in cast("str", chunk.spans[0].attributes["gen_ai.output.messages"])


def test_an_otlp_exporter_of_the_environment_stays(stream: redis.Redis, redis_url: str) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="extra [traceloop]")
    code = """
import http.server, threading
class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"])); say(path=self.path)
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
from aftercheck import _provider
_provider.traceloop_installed = lambda: False
aftercheck.init("demo", strict=True); call()
trace.get_tracer_provider().force_flush()
"""
    assert said(run(code, redis_url)) == [{"path": "/v1/traces"}]
    assert len(entries(stream)) == 1


@pytest.mark.req("P2")
def test_without_traceloop_a_provider_is_made_and_the_extra_named(stream: redis.Redis, redis_url: str) -> None:
    done = run(
        """
from aftercheck import _provider
_provider.traceloop_installed = lambda: False
aftercheck.init("demo", strict=True); aftercheck.init("other"); call()
""",
        redis_url,
    )
    assert done.stderr.count("aftercheck[traceloop]") == 1
    assert done.stderr.count("other settings") == 1
    assert [header.app for header, _ in entries(stream)] == ["demo"]


def test_a_provider_that_is_not_the_sdk_turns_us_off(redis_url: str) -> None:
    done = run(
        """
class Foreign(trace.TracerProvider):
    def get_tracer(self, *_, **__): return trace.NoOpTracer()
trace.set_tracer_provider(Foreign())
aftercheck.init("demo"); call(); say(stats=aftercheck.stats().finished)
""",
        redis_url,
    )
    assert said(done) == [{"stats": 0}]
    assert "takes no span processors" in done.stderr


@pytest.mark.req("F33", "I1")
def test_every_child_sends_its_own_and_none_twice(stream: redis.Redis, redis_url: str) -> None:
    code = """
import multiprocessing
own_provider(); aftercheck.init("demo", strict=True)
def child(n):
    for _ in range(5): call(f"child {n}")
    s = aftercheck.stats()
    assert s.finished == s.not_sampled + s.enqueued + sum(s.dropped.values()) + s.buffered, s
call("parent")
children = [multiprocessing.get_context("fork").Process(target=child, args=(n,)) for n in range(3)]
for c in children: c.start()
for c in children: c.join()
pid = os.fork()
if pid == 0:
    child("raw"); aftercheck.flush(); os._exit(0)
os.waitpid(pid, 0)
say(codes=[c.exitcode for c in children], left=aftercheck.flush().left)
"""
    assert said(run(code, redis_url)) == [{"codes": [0, 0, 0], "left": 0}]
    names = sorted(chunk.spans[0].name for _, chunk in entries(stream) if chunk is not None)
    expected = ["parent"] + [f"child {n}" for n in (0, 1, 2, "raw") for _ in range(5)]
    assert names == sorted(expected)


@pytest.mark.req("P3")
def test_a_script_that_just_ends_has_sent_all(stream: redis.Redis, redis_url: str) -> None:
    run('own_provider(); aftercheck.init("demo", strict=True)\nfor _ in range(20): call()', redis_url)
    assert len(entries(stream)) == 20


@pytest.mark.req("F08", "P4")
def test_a_full_stream_refuses_and_the_loss_is_counted(stream: redis.Redis, redis_url: str) -> None:
    done = run(
        """
own_provider(); aftercheck.init("demo", strict=True)
for _ in range(10): call()
say(**aftercheck.flush()._asdict())
""",
        redis_url,
        AFTERCHECK_MAX_STREAM_ENTRIES="4",
    )
    assert said(done) == [{"flushed": 4, "left": 0, "dropped": {"redis_full": 6}}]
    assert len(entries(stream)) == 4


@pytest.mark.req("P4")
def test_a_trace_that_found_no_room_leaves_a_header(stream: redis.Redis, redis_url: str) -> None:
    done = run(
        """
own_provider(); aftercheck.init("demo", max_buffer_bytes=1024 * 1024, strict=True)
tracer = trace.get_tracer("app")
with tracer.start_as_current_span("root") as root:
    call()
    with tracer.start_as_current_span("big") as big: big.set_attribute("gen_ai.output.messages", "x" * 2_000_000)
    call()
say(trace=aftercheck.feedback("ab" * 16, "up"), **aftercheck.flush()._asdict())
""",
        redis_url,
    )
    told = said(done)[0]
    found = entries(stream)
    losses = [header for header, _ in found if header.dropped]
    assert [(loss.drop_reason, loss.dropped) for loss in losses] == [("buffer_full", sum(_dropped(told).values()))]
    assert not [chunk for _, chunk in found if chunk is not None and len(chunk.spans) > 1]


def _dropped(told: dict[str, object]) -> dict[str, int]:
    return cast("dict[str, int]", told["dropped"])


@pytest.mark.req("R1")
def test_importing_is_light(redis_url: str) -> None:
    done = run(
        'heavy = {"redis", "msgspec", "aftercheck_schemas", "celery", "pydantic", "numpy"}\n'
        "say(heavy=sorted(heavy & set(sys.modules)))",
        redis_url,
    )
    assert said(done) == [{"heavy": []}]


def test_dev_mode_says_what_was_sent(stream: redis.Redis, redis_url: str) -> None:
    done = run('own_provider(); aftercheck.init("demo"); call(); aftercheck.flush()', redis_url, AFTERCHECK_DEV="1")
    assert done.stdout == ""
    assert "aftercheck: sent 1 spans" in done.stderr
    assert len(entries(stream)) == 1
