"""From the chunks that processes sent to one trace: merge, de-duplicate, sort. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aftercheck_schemas import Trace
from aftercheck_schemas.sessions import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_schemas import Chunk, Json, LogRecord, SpanRecord
    from aftercheck_schemas.vocabulary import Origin


def assemble(
    trace_id: str,
    app: str,
    chunks: Sequence[Chunk],
    *,
    environment: str = "",
    session_id: str = "",
    origin: Origin = "production",
    complete: bool = True,
    dropped: int = 0,
) -> Trace:
    """Merge all chunks of one trace.

    A span that was sent twice counts once: the copy with more attributes, events and time wins (O-18). Spans of
    another trace are left out. A log record counts once however many chunks repeat it; equal records inside
    one chunk are kept, because a history may repeat a word.

    Args:
        trace_id: 32 hex digits.
        app: name of the app, from the stream entry's header.
        chunks: in any order.
        environment: deployment environment, "" when unknown.
        session_id: from the header; "" takes it from the spans (`session_of`).
        origin: R53.
        complete: False when intake gave up waiting.
        dropped: spans that the producer dropped; > 0 makes the trace incomplete.

    Returns:
        Spans sorted by start, parents first. Never raises.
    """
    spans = _merged_spans(trace_id, chunks)
    resource: dict[str, Json] = {}
    for chunk in chunks:
        for key, value in chunk.resource.items():
            resource.setdefault(key, value)
    return Trace(
        trace_id=trace_id,
        app=app,
        environment=environment or _environment(resource),
        session_id=session_id or session_of(spans),
        origin=origin,
        spans=spans,
        logs=_merged_logs(trace_id, chunks),
        resource=resource,
        complete=complete and dropped == 0,
        truncated=any(span.truncated or span.dropped_attributes for span in spans),
    )


def _merged_spans(trace_id: str, chunks: Sequence[Chunk]) -> tuple[SpanRecord, ...]:
    kept: dict[str, SpanRecord] = {}
    for chunk in chunks:
        for span in chunk.spans:
            if span.trace_id != trace_id:
                continue
            other = kept.get(span.span_id)
            if other is None or _richness(span) > _richness(other):
                kept[span.span_id] = span
    if len(kept) == 1:
        return tuple(kept.values())
    return tuple(sorted(kept.values(), key=_order))


def _richness(span: SpanRecord) -> tuple[bool, int, int, int]:
    """An ended span beats a started one (O-19); then the one that says more."""
    return (span.end > 0, len(span.attributes), len(span.events), span.end)


def _order(span: SpanRecord) -> tuple[int, int, str]:
    return (span.start, -span.end, span.span_id)


def _merged_logs(trace_id: str, chunks: Sequence[Chunk]) -> tuple[LogRecord, ...]:
    sources = [chunk.logs for chunk in chunks if chunk.logs]
    if not sources:
        return ()
    kept: list[LogRecord] = []
    earlier: set[bytes] = set()
    for logs in sources:
        mine = [(log, _fingerprint(log)) for log in logs if log.trace_id == trace_id]
        kept.extend(log for log, key in mine if key not in earlier)
        earlier.update(key for _, key in mine)
    kept.sort(key=_log_time)
    return tuple(kept)


def _log_time(log: LogRecord) -> int:
    return log.time


def _fingerprint(log: LogRecord) -> bytes:
    try:
        return msgspec.msgpack.encode(log)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return repr((log.span_id, log.event_name, log.time)).encode("utf-8", "replace")


def _environment(resource: dict[str, Json]) -> str:
    value = resource.get("deployment.environment.name", resource.get("deployment.environment"))
    return value[:100] if isinstance(value, str) else ""
