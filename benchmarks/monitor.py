"""The serving process: checks in the loop, the pages over a million evaluations, and the OTLP receiver."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
import redis
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from psycopg.rows import TupleRow
from pydantic import SecretStr

from aftercheck_schemas.wire import bytes_key, stream_key
from aftercheck_worker import embedded
from aftercheck_worker.api import server
from aftercheck_worker.settings import Settings, load
from aftercheck_worker.storage import database, migrate
from benchmarks import _full_traces

EVALUATIONS = 1_000_000
ROUNDS = 100
REQUEST = {
    "agent_id": "shop",
    "input": "What does the plan include?",
    "output": (
        "The basic plan costs 12 euro a month. It includes support by mail. Data is kept for thirty days. "
        "Two users may share one account. A yearly contract saves ten per cent."
    ),
    "context": [
        "The basic plan costs 12 euro a month and is billed on the first day. " * 6,
        "Support by mail is part of every plan; telephone support is not part of the basic plan. " * 6,
        "All data is kept for thirty days after the end of the contract, then it is deleted for good. " * 6,
        "Up to two users may share one account of the basic plan. More users need the team plan. " * 6,
        "A contract for a year saves ten per cent against paying by the month, for every plan we sell. " * 6,
    ],
}
_FILL = """
INSERT INTO evaluation (day, evaluation_id, evaluator_version, tenant, trace_id, span_id, app, environment, model,
                        prompt_version, evaluator, origin, weight, outcome, faithfulness, hallucinated, flagged,
                        claims, verifiable, finalised_at)
SELECT current_date, n, repeat('0', 64), 'default', lpad(to_hex(n), 32, '0'), lpad(to_hex(n), 16, '0'),
       'app' || n %% 40, 'production', 'model' || n %% 3, 'p' || n %% 5, 'engine', 'production', 20,
       CASE WHEN n %% 10 = 0 THEN 'ungrounded' ELSE 'grounded' END, CASE WHEN n %% 10 = 0 THEN 0.5 ELSE 1 END,
       n %% 10 = 0, n %% 10 = 0, 5, 5, now() - make_interval(secs => 86400.0 * n / %(count)s)
FROM generate_series(1, %(count)s) AS n
"""
_LEDGER = """
INSERT INTO ledger (evaluation_id, tenant, trace_id, span_id, day, app, state, weight, finalised_at)
OVERRIDING SYSTEM VALUE
SELECT evaluation_id, tenant, trace_id, span_id, day, app, 'scored', weight, finalised_at FROM evaluation
"""


def run() -> dict[str, float]:
    """Measure.

    `check.p95_ms`: one caller, 5 claims x 5 passages, the default evaluator. `check.errors_50_callers`: replies other
    than 200 and 503 with Retry-After. `ui.*_p95_ms`: pages at a million stored evaluations, a 30-minute window; every
    trace page is another trace, with its text, five claims, evidence, a judge, and three repeats.
    `otlp.spans_per_s`: requests of 500 spans as protobuf, one process, client and server on this machine.
    """
    with tempfile.TemporaryDirectory() as home, embedded.start(Path(home)) as services:
        if services.database_url is None or services.redis_url is None:
            raise RuntimeError("the embedded services did not start")
        migrate.upgrade(services.database_url)
        settings = load({}).model_copy(
            update={
                "home": Path(home),
                "api_port": 0,
                "api_rate_per_minute": 10_000_000,
                "database_url": SecretStr(services.database_url),
                "redis_url": SecretStr(services.redis_url),
            }
        )
        # Filled before the checks, which are stored too: their ids go on behind the fill's.
        with database.connect(services.database_url, name="benchmark", statement_timeout=0) as connection:
            connection.autocommit = True
            _fill(connection)
        with _serving(settings) as client:
            return {**_checks(client), **_otlp(client, services.redis_url), **_pages(client)}


@contextmanager
def _serving(settings: Settings) -> Generator[httpx.Client, None, None]:
    stop, up = threading.Event(), threading.Event()
    urls: list[str] = []

    def ready(url: str) -> None:
        urls.append(url)
        up.set()

    thread = threading.Thread(target=server.run, args=(settings, stop), kwargs={"ready": ready})
    thread.start()
    up.wait(60)
    try:
        with httpx.Client(base_url=urls[0], timeout=60, limits=httpx.Limits(max_connections=64)) as client:
            yield client
    finally:
        stop.set()
        thread.join(30)


def _p95(call: Callable[[], httpx.Response], rounds: int = ROUNDS) -> float:
    times: list[float] = []
    for number in range(rounds + 5):
        began = time.perf_counter()
        call().raise_for_status()
        if number >= 5:
            times.append((time.perf_counter() - began) * 1000)
    return statistics.quantiles(times, n=20)[18]


def _checks(client: httpx.Client) -> dict[str, float]:
    p95 = _p95(lambda: client.post("/monitor/check", json=REQUEST))

    def call(_: int) -> str:
        reply = client.post("/monitor/check", json=REQUEST)
        fine = reply.status_code == 200 or (reply.status_code == 503 and "Retry-After" in reply.headers)
        return str(reply.status_code) if fine else "wrong"

    with ThreadPoolExecutor(50) as callers:
        found = Counter(callers.map(call, range(500)))
    return {"check.p95_ms": p95, "check.errors_50_callers": found["wrong"], "check.answered_50_callers": found["200"]}


def _otlp(client: httpx.Client, redis_url: str) -> dict[str, float]:
    request = ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for number in range(500):
        span = spans.add(trace_id=(number // 5 + 1).to_bytes(16, "big"), span_id=(number + 1).to_bytes(8, "big"))
        span.name = "chat"
        for key, size in (("gen_ai.input.messages", 1500), ("gen_ai.output.messages", 500), ("gen_ai.system", 10)):
            attribute = span.attributes.add(key=key)
            attribute.value.string_value = "The plan costs 12 euro. " * (size // 24)
    body, sent = request.SerializeToString(), 0
    with redis.Redis.from_url(redis_url) as valkey:  # pyright: ignore[reportUnknownMemberType]
        began = time.perf_counter()
        while (passed := time.perf_counter() - began) < 5:
            headers = {"Content-Type": "application/x-protobuf"}
            client.post("/v1/traces", content=body, headers=headers).raise_for_status()
            sent += 500
        valkey.delete(stream_key(), bytes_key())
    return {"otlp.spans_per_s": sent / passed}


def _fill(connection: psycopg.Connection[TupleRow]) -> None:
    connection.execute(_FILL, {"count": EVALUATIONS})
    connection.execute(_LEDGER)
    connection.execute(
        "SELECT setval(pg_get_serial_sequence('ledger', 'evaluation_id'), max(evaluation_id)) FROM ledger"
    )
    connection.execute("ANALYZE evaluation, ledger")
    _full_traces.fill(connection)


def _pages(client: httpx.Client) -> dict[str, float]:
    step = EVALUATIONS // 250 // _full_traces.EVERY * _full_traces.EVERY
    traces = itertools.cycle(f"{number:032x}" for number in range(step, EVALUATIONS, step))
    shown = client.get(f"/ui/traces/{next(traces)}").text
    if shown.count('class="claim ') != len(_full_traces.SENTENCES) or "<mark" not in shown:
        raise RuntimeError("the trace page shows no claims and no evidence: what is measured is not the page")
    return {
        "ui.trace_page_p95_ms": _p95(lambda: client.get(f"/ui/traces/{next(traces)}")),
        "ui.incident_page_p95_ms": _p95(lambda: client.get("/ui/incidents?alert=FaithfulnessLow"), 40),
        "ui.list_page_p95_ms": _p95(lambda: client.get("/ui/traces"), 40),
        "ui.disagreements_page_p95_ms": _p95(lambda: client.get("/ui/disagreements"), 40),
        "ui.health_page_p95_ms": _p95(lambda: client.get("/ui/health"), 40),
    }
