"""The producer under faults: Redis gone, hung, slow, full; poison spans; hooks and rules that raise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zlib
from typing import TYPE_CHECKING, cast

import pytest
import redis

from aftercheck_schemas import decode_entry, stream_key
from tests.faults.proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.faults

PRELUDE = """
import json, sys, time, aftercheck
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
def call(text="[]", name="openai.chat"):
    with trace.get_tracer("app").start_as_current_span(name) as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.output.messages", text)
def say(**values):
    print(json.dumps(values), flush=True)
def counters():
    s = aftercheck.stats()
    assert s.finished == s.not_sampled + s.enqueued + sum(s.dropped.values()) + s.buffered, s
    return s
def wait(until, seconds=20):
    end = time.monotonic() + seconds
    while not until() and time.monotonic() < end: time.sleep(0.02)
    assert until(), counters()
"""


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as connection:
        connection.flushall()
        yield connection


@pytest.fixture
def proxy(client: redis.Redis) -> Iterator[FaultProxy]:
    options = client.connection_pool.connection_kwargs
    with FaultProxy(cast("str", options["host"]), cast("int", options["port"]), rate=1_000) as running:
        yield running


def _through(proxy: FaultProxy, url: str) -> str:
    return f"{url.rpartition('@')[0]}@127.0.0.1:{proxy.port}/0"


def _start(code: str, url: str) -> subprocess.Popen[str]:
    env = {**os.environ, "AFTERCHECK_REDIS_URL": url}
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + code],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> list[dict[str, object]]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return [json.loads(line) for line in out.splitlines()]


def _traces(client: redis.Redis) -> list[str]:
    raw = cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(stream_key()))
    return [decode_entry(fields)[0].trace_id for _, fields in raw]


@pytest.mark.req("F06", "P1", "I1")
@pytest.mark.parametrize("mode", ["down", "blackhole", "reset", "slow"])
def test_redis_away_and_back_loses_nothing_that_fits(
    mode: str, proxy: FaultProxy, client: redis.Redis, redis_url: str
) -> None:
    code = """
aftercheck.init("demo", strict=True)
call(); aftercheck.flush(); say(up=counters().enqueued)
sys.stdin.readline()
for _ in range(200): call("x" * 500)
wait(lambda: counters().last_error)
say(buffered=counters().buffered)
sys.stdin.readline()
wait(lambda: aftercheck.flush().left == 0)
say(**counters()._asdict())
"""
    process = _start(code, _through(proxy, redis_url))
    assert process.stdin is not None
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == {"up": 1}
    proxy.set(mode)  # type: ignore[arg-type]
    process.stdin.write("\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["buffered"] > 0
    proxy.set("ok")
    process.stdin.write("\n")
    process.stdin.flush()
    (told,) = _finish(process)
    assert (told["enqueued"], told["dropped"], told["buffered"]) == (201, {}, 0)
    assert len(set(_traces(client))) == 201, "at least once"


@pytest.mark.req("F06", "P4")
def test_a_buffer_that_fills_while_redis_is_away_drops_whole_traces_under_that_name(redis_url: str) -> None:
    code = """
aftercheck.init("demo", max_buffer_bytes=1024 * 1024, strict=True)
call(); wait(lambda: counters().last_error)
import random
for _ in range(2_000): call(random.randbytes(2_000).hex())
s = counters()
say(reasons=list(s.dropped), lost=s.traces_dropped, within=s.buffered_bytes <= 1024 * 1024)
"""
    (told,) = _finish(_start(code, "redis://127.0.0.1:1/0"))
    assert told["reasons"] == ["redis_unavailable"]
    assert cast("int", told["lost"]) > 100
    assert told["within"]


@pytest.mark.req("P3")
@pytest.mark.parametrize("mode", ["blackhole", "down"])
def test_the_exit_is_not_held_up(mode: str, proxy: FaultProxy, redis_url: str) -> None:
    proxy.set(mode)  # type: ignore[arg-type]
    code = """
import atexit
atexit.register(lambda: say(ended=time.time()))  # runs after ours
aftercheck.init("demo", strict=True)
for _ in range(50): call()
say(started=time.time())
"""
    began, ended = _finish(_start(code, _through(proxy, redis_url)))
    assert cast("float", ended["ended"]) - cast("float", began["started"]) < 3, "P3: 2 s, and a slow machine"


@pytest.mark.req("F08", "P4")
def test_redis_out_of_memory_is_counted_and_heals(client: redis.Redis, redis_url: str) -> None:
    code = """
aftercheck.init("demo", strict=True)
call(); aftercheck.flush(); say(ready=True); sys.stdin.readline()
for _ in range(20): call()
say(**aftercheck.flush()._asdict()); sys.stdin.readline()
call(); say(**aftercheck.flush()._asdict())
"""
    process = _start(code, redis_url)
    assert process.stdin is not None
    assert process.stdout is not None
    before = cast("dict[str, str]", client.config_get("maxmemory"))["maxmemory"]
    try:
        assert json.loads(process.stdout.readline()) == {"ready": True}
        client.config_set("maxmemory", "1mb")
        process.stdin.write("\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"flushed": 0, "left": 0, "dropped": {"redis_full": 20}}
    finally:
        client.config_set("maxmemory", before)
    process.stdin.write("\n")
    process.stdin.flush()
    (last,) = _finish(process)
    assert last == {"flushed": 1, "left": 0, "dropped": {}}


@pytest.mark.req("F07", "F36")
def test_a_wiped_redis_gets_the_script_again(client: redis.Redis, redis_url: str) -> None:
    code = """
aftercheck.init("demo", strict=True)
call(); aftercheck.flush(); say(ready=True); sys.stdin.readline()
call(); say(**aftercheck.flush()._asdict())
"""
    process = _start(code, redis_url)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    client.flushall()
    client.script_flush()
    process.stdin.write("\n")
    process.stdin.flush()
    assert _finish(process) == [{"flushed": 1, "left": 0, "dropped": {}}]
    assert len(_traces(client)) == 1


@pytest.mark.req("F25")
def test_poison_spans_cost_only_themselves(client: redis.Redis, redis_url: str) -> None:
    code = r"""
aftercheck.init("demo", strict=True)
poison = {
    "10 MB": "word " * 2_000_000, "one token": "x" * 1_000_000, "lone": "a\ud83d", "nul": "a\0b",
    "nan": "[NaN, Infinity, 1e999]", "int": "[" + "9" * 5000 + "]", "deep": "[" * 200_000, "deeper": '{"a":' * 1000,
    "twice": '{"a": 1, "a": 2}', "empty": "", "escaped": '["\\ud83d"]',
}
for name, text in poison.items(): call(text, name)
with trace.get_tracer("app").start_as_current_span("many") as span:
    for n in range(100_000): span.set_attribute(f"gen_ai.k{n}", n)
with trace.get_tracer("app").start_as_current_span("n\ud83d\0") as span:
    span.set_attribute("gen_ai.prompt", b"\xff\xfe"); span.set_attribute("gen_ai.x", float("nan"))
call("fine", "good")
aftercheck.flush(30)
s = counters(); say(dropped=s.dropped, left=s.buffered, enqueued=s.enqueued, finished=s.finished)
"""
    (told,) = _finish(_start(code, redis_url))
    assert told == {"dropped": {}, "left": 0, "enqueued": 14, "finished": 14}
    raw = cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(stream_key()))
    cut = {}
    for _, fields in raw:
        span = json.loads(zlib.decompress(decode_entry(fields)[1]))["spans"][0]
        json.dumps(span, allow_nan=False).encode()
        assert "\0" not in json.dumps(span)
        cut[span["name"]] = span.get("truncated", [])
    assert cut["10 MB"] == cut["one token"] == ["gen_ai.output.messages"]
    assert cut["good"] == []


@pytest.mark.req("P1", "S05")
def test_a_hook_that_raises_anything_costs_only_its_trace(client: redis.Redis, redis_url: str) -> None:
    code = """
def hook(chunk):
    if chunk.spans[0].name == "exit": raise SystemExit(1)
    if chunk.spans[0].name == "interrupt": raise KeyboardInterrupt
    return chunk
aftercheck.init("demo", before_send=hook, strict=True)
for name in ("exit", "interrupt", "good"): call(name=name)
say(**aftercheck.flush()._asdict()); counters()
"""
    assert _finish(_start(code, redis_url)) == [{"flushed": 1, "left": 0, "dropped": {"before_send": 2}}]


@pytest.mark.req("P4", "I1")
def test_a_killed_process_loses_only_what_waited(client: redis.Redis, redis_url: str) -> None:
    code = """
aftercheck.init("demo", strict=True)
for _ in range(30): call()
aftercheck.flush(); say(sent=counters().enqueued)
for _ in range(30): call()
time.sleep(60)
"""
    process = _start(code, redis_url)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline()) == {"sent": 30}
    process.kill()
    process.communicate(timeout=10)
    assert 30 <= len(_traces(client)) <= 60


@pytest.mark.req("F33")
def test_a_fork_in_the_middle_of_traffic_does_not_deadlock(client: redis.Redis, redis_url: str) -> None:
    code = """
import os, threading
aftercheck.init("demo", strict=True)
stop = threading.Event()
def traffic():
    while not stop.is_set(): call(); time.sleep(0.0005)
threads = [threading.Thread(target=traffic) for _ in range(3)]
for t in threads: t.start()
children = []
for n in range(8):
    pid = os.fork()
    if pid == 0:
        call(name="child"); code = 0 if aftercheck.flush(20).left == 0 else 1
        counters(); os._exit(code)
    children.append(pid); time.sleep(0.03)
codes = [os.waitpid(pid, 0)[1] for pid in children]
stop.set()
for t in threads: t.join()
aftercheck.flush(20); counters(); say(codes=codes)
"""
    started = time.monotonic()
    assert _finish(_start(code, redis_url)) == [{"codes": [0] * 8}], f"after {time.monotonic() - started:.1f} s"
    names = [
        json.loads(zlib.decompress(decode_entry(fields)[1]))["spans"][0]["name"]
        for _, fields in cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(stream_key()))
    ]
    assert names.count("child") == 8
    ids = _traces(client)
    assert len(ids) == len(set(ids)), "no copies"
