"""Traces as a producer sends them, and an intake whose messages are kept in a list."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import psycopg
import redis
from psycopg.rows import TupleRow

from aftercheck_schemas import EntryHeader, encode_entry
from aftercheck_schemas.vocabulary import Origin
from aftercheck_schemas.wire import ADMIT_LUA, bytes_key, stream_key
from aftercheck_worker.intake.loop import Intake, Timers
from aftercheck_worker.settings import Settings

FAST = Timers(rates=0.0, counters=1e9, claim=1e9, evict=1e9, beat=1e9)
"""Rates are read in every round; the rest happens when a test asks for it."""
START = 1_790_000_000_000_000_000
_numbers = itertools.count(1)


def trace_id(draw: float = 0.99, number: int | None = None) -> str:
    """Return a fresh trace id whose sampling draw is `draw` in [0, 1): kept at a rate above 1 - draw."""
    low = min((1 << 56) - 1, int(draw * (1 << 56)) + next(_numbers) * 1000)
    return f"{next(_numbers) if number is None else number:018x}{low:014x}"


def span_id() -> str:
    """Return a fresh span id."""
    return f"{next(_numbers):016x}"


def span(
    tid: str, sid: str | None = None, parent: str | None = None, name: str = "step", **attributes: object
) -> dict[str, object]:
    """Return a span as JSON."""
    number = next(_numbers)
    found: dict[str, object] = {
        "trace_id": tid,
        "span_id": sid or span_id(),
        "name": name,
        "start": START + number * 1000,
        "end": START + number * 1000 + 500,
        "attributes": attributes,
    }
    if parent:
        found["parent_id"] = parent
    return found


def answer_span(
    tid: str, sid: str | None = None, parent: str | None = None, answer: str = "Paris."
) -> dict[str, object]:
    """Return a model call that answers a question over a context."""
    prompt = "Context:\nParis is the capital of France.\n\nQuestion: What is the capital of France?"
    return span(
        tid,
        sid,
        parent,
        "openai.chat",
        **{
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": prompt}]}]),
            "gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "parts": [{"type": "text", "content": answer}], "finish_reason": "stop"}]
            ),
        },
    )


def whole(tid: str, answer: str = "Paris.") -> list[dict[str, object]]:
    """Return a trace of three spans: root, retriever, answer."""
    root = span_id()
    documents = json.dumps([{"content": "Paris is the capital of France.", "id": "doc-1"}])
    return [
        span(tid, root, None, "qa.workflow", **{"traceloop.span.kind": "workflow"}),
        span(tid, None, root, "retriever.task", **{"retrieval.documents": documents}),
        answer_span(tid, None, root, answer),
    ]


def packed(spans: Sequence[Mapping[str, object]], **more: object) -> bytes:
    """Return the payload of a chunk."""
    return zlib.compress(json.dumps({"resource": {"service.name": "t"}, "spans": list(spans), **more}).encode(), 1)


class Traffic:
    """Writes to the stream as the producer does."""

    def __init__(self, url: str, tenant: str = "default") -> None:
        self.client = redis.Redis.from_url(url)
        self.tenant = tenant
        self._admit = self.client.register_script(ADMIT_LUA)

    def raw(self, fields: Sequence[str | bytes], size: int) -> bytes:
        """Add an entry with any fields."""
        keys = [stream_key(self.tenant), bytes_key(self.tenant)]
        reply = self._admit(keys=keys, args=[1_000_000, 1 << 40, size, *fields])
        assert isinstance(reply, bytes)
        return reply

    def send(
        self,
        tid: str,
        payload: bytes,
        *,
        app: str = "shop",
        origin: Origin = "production",
        root: bool = True,
        remote_root: bool = False,
        session_id: str = "",
        local_complete: bool = True,
        dropped: int = 0,
        drop_reason: str = "",
        size: int = 0,
    ) -> bytes:
        """Add a chunk of a trace; return the entry id."""
        header = EntryHeader(
            app=app,
            trace_id=tid,
            origin=origin,
            root=root,
            remote_root=remote_root,
            session_id=session_id,
            local_complete=local_complete,
            dropped=dropped,
            drop_reason=drop_reason,
            size=size,
        )
        return self.raw(encode_entry(header, payload), len(payload))

    def trace(self, draw: float = 0.99, *, app: str = "shop", origin: Origin = "production") -> str:
        """Send a whole trace in one entry; return its id."""
        tid = trace_id(draw)
        self.send(tid, packed(whole(tid)), app=app, origin=origin)
        return tid

    def feedback(self, tid: str, value: object = "down", **more: object) -> bytes:
        """Send a user's feedback."""
        payload = zlib.compress(json.dumps({"trace_id": tid, "value": value, **more}).encode())
        header = EntryHeader(kind="feedback", app="shop", trace_id=tid)
        return self.raw(encode_entry(header, payload), len(payload))

    def left(self) -> tuple[int, int]:
        """Return entries and payload bytes in the stream."""
        size = self.client.get(bytes_key(self.tenant))
        length = self.client.xlen(stream_key(self.tenant))
        assert isinstance(length, int)
        assert size is None or isinstance(size, bytes)
        return length, int(size or 0)


class Sent:
    """What an intake has sent to the workers."""

    def __init__(self) -> None:
        self.messages: list[tuple[list[int], bool]] = []
        self.broken = False

    def __call__(self, ids: Sequence[int], high: bool) -> None:
        if self.broken:
            raise ConnectionError("the broker is away")
        self.messages.append((list(ids), high))

    @property
    def ids(self) -> list[int]:
        """All ids."""
        return [number for ids, _ in self.messages for number in ids]


def quick(settings: Settings, **more: object) -> Settings:
    """Return settings with short waits."""
    short = {"quiet_seconds": 0.05, "quiet_seconds_otlp": 0.2, "idle_seconds": 0.3, "max_wait_seconds": 2.0}
    return settings.model_copy(update={**short, "sampling_rate": 1.0, **more})


@contextmanager
def intake(settings: Settings, sent: Sent | None = None) -> Generator[Intake]:
    """Run one intake by hand."""
    made = Intake(settings, sent or Sent(), timers=FAST)
    try:
        yield made
    finally:
        made.close()


def totals(connection: psycopg.Connection[TupleRow], tenant: str = "default") -> dict[str, float]:
    """Return the intake's totals by `metric` or `metric.key`, summed over apps."""
    rows = connection.execute(
        "SELECT metric, key, sum(value) FROM total WHERE tenant = %s AND metric <> 'intake_stamp' GROUP BY 1, 2",
        (tenant,),
    ).fetchall()
    connection.commit()
    return {f"{row[0]}.{row[1]}" if row[1] else str(row[0]): float(row[2]) for row in rows}
