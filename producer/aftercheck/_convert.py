"""From OpenTelemetry's finished span to our slim `SpanRecord`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from opentelemetry.trace import StatusCode

from aftercheck_schemas import cleaning
from aftercheck_schemas.trace import SpanRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.sdk.trace import ReadableSpan

    from aftercheck_schemas.slimming import Slimmer
    from aftercheck_schemas.trace import SpanEvent, SpanStatus

_STATUS: dict[StatusCode, SpanStatus] = {StatusCode.UNSET: "unset", StatusCode.OK: "ok", StatusCode.ERROR: "error"}


def convert(span: ReadableSpan, slimmer: Slimmer, content: bool) -> SpanRecord:
    """Build the record.

    Args:
        span: a finished span.
        slimmer: cleans the values of this trace.
        content: False drops all text of prompts, answers and documents (S06).
    """
    context = span.context
    assert context is not None  # noqa: S101 - finished spans of the SDK have one
    parent = span.parent
    attributes, truncated = cleaning.attributes(span.attributes or {}, slimmer, content)
    events: list[SpanEvent] = []
    for event in span.events:
        if cleaning.event_wanted(event.name, content):
            given = cast("Mapping[str, object]", event.attributes or {})
            made, cut = cleaning.event(event.name, event.timestamp, given, slimmer, content)
            events.append(made)
            truncated += cut
    return SpanRecord(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id=f"{parent.span_id:016x}" if parent is not None else None,
        parent_is_remote=parent is not None and parent.is_remote,
        name=slimmer.text(span.name)[:1_000],
        kind=span.kind.name.lower(),
        scope=span.instrumentation_scope.name if span.instrumentation_scope is not None else "",
        start=span.start_time or 0,
        end=span.end_time or 0,
        status=_STATUS[span.status.status_code],
        status_message=slimmer.text(span.status.description or "")[:4_000],
        attributes=attributes,
        events=tuple(events),
        truncated=tuple(truncated),
        dropped_attributes=span.dropped_attributes + max(0, len(span.attributes or {}) - cleaning.MAX_ATTRIBUTES),
    )
