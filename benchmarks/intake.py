"""Traces per second of one intake process, on real Valkey and Postgres: `python -m benchmarks.intake`.

The stream is filled first; then one intake takes every entry off it and writes what is sampled to the ledger. Each
entry is a whole three-span trace (workflow, retriever with three documents, chat with prompt and answer), about 4 kB
of JSON. Waiting for quiet is set to almost nothing: it delays a trace and costs no work.
"""

from __future__ import annotations

import gc
import json
import os
import random
import secrets
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import redis
from pydantic import SecretStr

from aftercheck_schemas import EntryHeader, encode_entry
from aftercheck_schemas.wire import ADMIT_LUA, bytes_key, stream_key
from aftercheck_worker import embedded
from aftercheck_worker.intake.loop import Intake
from aftercheck_worker.settings import Settings, load
from aftercheck_worker.storage import migrate

TRACES = 20_000
TRACES_100 = 8_000
START_NS = 1_790_000_000_000_000_000
_WORDS = (
    "the quarterly revenue of the retail segment rose by four percent while operating costs stayed flat because",
    "energy prices fell and two warehouses were closed in spring the board expects a similar result next year",
)
_VOCABULARY = " ".join(_WORDS).split()


def run() -> dict[str, float]:
    """Measure; keys `intake.traces_per_s` (5 % sampling) and `intake.traces_per_s_100`, with their CPU twins."""
    with tempfile.TemporaryDirectory() as home, embedded.start(Path(home)) as services:
        database_url, redis_url = services.database_url, services.redis_url
        if database_url is None or redis_url is None:
            raise RuntimeError("the embedded services did not start")
        migrate.upgrade(database_url)
        found: dict[str, float] = {}
        for name, rate, count in (("", 0.05, TRACES), ("_100", 1.0, TRACES_100)):
            settings = load({}).model_copy(
                update={
                    "database_url": SecretStr(database_url),
                    "redis_url": SecretStr(redis_url),
                    "tenant": f"bench{secrets.token_hex(4)}",
                    "sampling_rate": rate,
                    "quiet_seconds": 0.05,
                }
            )
            found |= _measure(settings, redis_url, count, name)
        return found


def _measure(settings: Settings, redis_url: str, count: int, name: str) -> dict[str, float]:
    size = fill(redis_url, settings.tenant, count)
    intake = Intake(settings, _send)
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    intake.drain(300)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    intake.close()
    return {
        f"intake.traces_per_s{name}": count / wall,
        f"intake.cpu_us_per_trace{name}": cpu / count * 1e6,
        "intake.json_bytes_per_trace": size,
    }


def _send(ids: Sequence[int], high: bool) -> None:
    """Stand for Celery, whose cost belongs to the worker's benchmark."""
    _ = ids, high


def fill(redis_url: str, tenant: str, count: int) -> float:
    """Put `count` traces on the stream; return their mean JSON size in bytes."""
    rng = random.Random(7)
    total = 0
    with redis.Redis.from_url(redis_url) as client:
        sha = client.script_load(ADMIT_LUA)
        for start in range(0, count, 500):
            pipe = client.pipeline(transaction=False)
            for _ in range(start, min(start + 500, count)):
                trace_id = f"{rng.getrandbits(128):032x}"
                document = document_of(trace_id, rng)
                total += len(document)
                header = EntryHeader(
                    app="bench", trace_id=trace_id, root=True, local_complete=True, size=len(document)
                )
                payload = zlib.compress(document, 1)
                keys = (stream_key(tenant), bytes_key(tenant))
                limits = (10_000_000, 1 << 40, len(payload))
                pipe.evalsha(sha, 2, *keys, *limits, *encode_entry(header, payload))
            pipe.execute()
    return total / count


def document_of(trace_id: str, rng: random.Random) -> bytes:
    """Return the JSON of a three-span trace, as OpenLLMetry records it."""
    root, retriever, chat = (f"{rng.getrandbits(64):016x}" for _ in range(3))
    passages = [_text(rng, 60) for _ in range(3)]
    prompt = "Context:\n" + "\n\n".join(passages) + "\n\nQuestion: " + _text(rng, 10) + "?"
    messages = [
        {"role": "system", "parts": [{"type": "text", "content": "Answer from the context only."}]},
        {"role": "user", "parts": [{"type": "text", "content": prompt}]},
    ]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": _text(rng, 40)}], "finish_reason": "stop"}]
    spans = [
        _span(trace_id, root, None, "qa.workflow", {"traceloop.span.kind": "workflow"}),
        _span(
            trace_id,
            retriever,
            root,
            "retriever.task",
            {"traceloop.span.kind": "task", "traceloop.entity.output": json.dumps(passages)},
        ),
        _span(
            trace_id,
            chat,
            root,
            "openai.chat",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.request.temperature": 0.2,
                "gen_ai.usage.input_tokens": 420,
                "gen_ai.input.messages": json.dumps(messages),
                "gen_ai.output.messages": json.dumps(answer),
            },
        ),
    ]
    return json.dumps({"resource": {"service.name": "bench"}, "spans": spans}).encode()


def _span(
    trace_id: str, span_id: str, parent: str | None, name: str, attributes: dict[str, object]
) -> dict[str, object]:
    return {
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_id": parent,
        "name": name,
        "kind": "client",
        "scope": "opentelemetry.instrumentation.openai.v1",
        "start": START_NS,
        "end": START_NS + 1_000_000,
        "attributes": attributes,
    }


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_VOCABULARY, k=words)) + "."


if __name__ == "__main__":
    json.dump({**run(), "cores": float(os.cpu_count() or 0)}, sys.stdout, indent=2)
    print()
