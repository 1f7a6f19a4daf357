"""`aftercheck push`: sends rows as real OpenTelemetry spans through the real producer, with origin replay (R53).

A program of its own, in a folder that is no package, so that the worker never imports the producer (import rule 1).
It reads {"query", "context", "answer"} as JSON lines from stdin; `context` is a list of documents. It writes one line
{"trace_id"} per row to stdout, and at the end what `flush` says.
"""

from __future__ import annotations

import json
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import aftercheck


def main() -> None:
    """Send every row of stdin."""
    app = sys.argv[1]
    trace.set_tracer_provider(TracerProvider())
    aftercheck.init(app, strict=True, _origin="replay")
    tracer = trace.get_tracer("aftercheck.replay")
    for number, line in enumerate(sys.stdin, start=1):
        tell({"trace_id": send(tracer, json.loads(line))})
        if number % 500 == 0:
            aftercheck.flush(30)  # the buffer is bounded and drops when full; a replay waits instead
    left = aftercheck.flush(60)
    tell({"flushed": left.flushed, "left": left.left, "dropped": dict(left.dropped)})


def send(tracer: trace.Tracer, row: dict[str, object]) -> str | None:
    """Send one row as the span of a model call, with its passages recorded."""
    query, answer = str(row.get("query") or ""), str(row["answer"])
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "replay",
        "gen_ai.request.model": str(row.get("model") or "replay"),
        "gen_ai.input.messages": message("user", query),
        "gen_ai.output.messages": message("assistant", answer, finish_reason="stop"),
    }
    with tracer.start_as_current_span("chat replay", kind=trace.SpanKind.CLIENT, attributes=attributes):
        if row.get("context"):
            aftercheck.record_context(row["context"])
        return aftercheck.current_trace_id()


def message(role: str, text: str, **extra: str) -> str:
    """One message in the form of OpenTelemetry's GenAI conventions."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}], **extra}], ensure_ascii=False)


def tell(line: dict[str, object]) -> None:
    """Write one line to whoever started us."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
