"""Spans, logs and traces as they are captured and assembled."""

from __future__ import annotations

from typing import Literal

import msgspec

from aftercheck_schemas.vocabulary import Origin

Json = object
"""Any JSON value: None, bool, int, float, str, list or dict of the same. Readers narrow with isinstance.

Attribute values are JSON because the newer instrumentations record structures, not only strings.
"""

SpanStatus = Literal["unset", "ok", "error"]


class SpanEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One span event. `time` is nanoseconds since the epoch."""

    name: str
    time: int = 0
    attributes: dict[str, Json] = {}


class SpanRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finished span, slimmed and redacted.

    Attributes:
        trace_id: 32 hex digits. span_id: 16 hex digits. parent_id: 16 hex digits or None.
        parent_is_remote: the parent lives in another process.
        scope: name of the instrumentation scope.
        start, end: nanoseconds since the epoch.
        attributes: as recorded; JSON strings stay strings.
        truncated: attribute names whose value was cut by us; a value cut by OTel limits shows as invalid JSON.
        dropped_attributes: attributes that OTel's count limit removed.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    parent_is_remote: bool = False
    name: str = ""
    kind: str = "internal"
    scope: str = ""
    start: int = 0
    end: int = 0
    status: SpanStatus = "unset"
    status_message: str = ""
    attributes: dict[str, Json] = {}
    events: tuple[SpanEvent, ...] = ()
    truncated: tuple[str, ...] = ()
    dropped_attributes: int = 0


class LogRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One log record that belongs to a span (OTel GenAI events are logs)."""

    trace_id: str
    span_id: str = ""
    event_name: str = ""
    time: int = 0
    attributes: dict[str, Json] = {}
    body: Json = None


class Chunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The payload of a stream entry: what one process sent of one trace in one flush."""

    resource: dict[str, Json] = {}
    spans: tuple[SpanRecord, ...] = ()
    logs: tuple[LogRecord, ...] = ()


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one trace when intake decides to read it.

    `complete` is False after a drop, a deadline without root, or a cut; verdicts carry the flag.
    `truncated` is True when any attribute was cut.
    """

    trace_id: str
    app: str
    environment: str = ""
    session_id: str = ""
    origin: Origin = "production"
    spans: tuple[SpanRecord, ...]
    logs: tuple[LogRecord, ...] = ()
    resource: dict[str, Json] = {}
    complete: bool = True
    truncated: bool = False
