"""From OpenTelemetry's finished span to our slim `SpanRecord`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from opentelemetry.trace import StatusCode

from aftercheck._processor import CHUNK_EVENT
from aftercheck_schemas.trace import SpanEvent, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.sdk.trace import Event, ReadableSpan

    from aftercheck._slimming import Slimmer
    from aftercheck_schemas.trace import Json, SpanStatus

MAX_ATTRIBUTES = 1_024
STABLE_SCOPE = "stable"
SESSION_KEYS = (
    "aftercheck.session.id",
    "session.id",
    "gen_ai.conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
"""Attributes that name the session, most explicit first. Their placeholders are equal in all traces."""

_STABLE_KEYS = frozenset((*SESSION_KEYS, "user.id", "traceloop.association.properties.user_id"))
_DUPLICATES = {"gen_ai.task.input": "traceloop.entity.input", "gen_ai.task.output": "traceloop.entity.output"}
_STATUS: dict[StatusCode, SpanStatus] = {StatusCode.UNSET: "unset", StatusCode.OK: "ok", StatusCode.ERROR: "error"}
_CONTENT_KEYS = frozenset(
    {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.definitions",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.task.input",
        "gen_ai.task.output",
        "traceloop.entity.input",
        "traceloop.entity.output",
        "input.value",
        "output.value",
        "langfuse.observation.input",
        "langfuse.observation.output",
        "aftercheck.context",
        "aftercheck.output",
    }
)
_CONTENT_PREFIXES = ("gen_ai.prompt.", "gen_ai.completion.", "llm.input_messages.", "llm.output_messages.",
                     "retrieval.documents.", "ai.prompt", "ai.response", "ai.toolCall")  # fmt: skip


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
    attributes, truncated = _attributes(span.attributes or {}, slimmer, content)
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
        events=tuple(_event(event, slimmer, content, truncated) for event in span.events if _wanted(event, content)),
        truncated=tuple(truncated),
        dropped_attributes=span.dropped_attributes + max(0, len(span.attributes or {}) - MAX_ATTRIBUTES),
    )


def _attributes(given: Mapping[str, object], slimmer: Slimmer, content: bool) -> tuple[dict[str, Json], list[str]]:
    clean: dict[str, Json] = {}
    truncated: list[str] = []
    for number, (name, value) in enumerate(given.items()):
        if number >= MAX_ATTRIBUTES:
            break
        twin = _DUPLICATES.get(name)
        if (twin is not None and given.get(twin) == value) or not (content or not is_content(name)):
            continue
        key = name if name.isascii() and name.replace(".", "").replace("_", "").isalpha() else slimmer.text(name)
        if name in _STABLE_KEYS:
            clean[key] = slimmer.text(str(value), STABLE_SCOPE)
            continue
        clean[key], cut = slimmer.attribute(value, name)
        if cut:
            truncated.append(key)
    return clean, truncated


def is_content(name: str) -> bool:
    """Whether the attribute holds text of a prompt, an answer or a document."""
    return name in _CONTENT_KEYS or name.startswith(_CONTENT_PREFIXES)


def _wanted(event: Event, content: bool) -> bool:
    return event.name != CHUNK_EVENT and (content or event.name == "exception")


def _event(event: Event, slimmer: Slimmer, content: bool, truncated: list[str]) -> SpanEvent:
    given = cast("Mapping[str, object]", event.attributes or {})
    if event.name == "exception":  # a stack trace is long, full of paths, and nobody reads it here
        given = {name: value for name, value in given.items() if name != "exception.stacktrace"}
    attributes, cut = _attributes(given, slimmer, content)
    truncated += [f"{event.name}:{name}" for name in cut]
    return SpanEvent(name=slimmer.text(event.name)[:1_000], time=event.timestamp, attributes=attributes)


def session_of(records: list[SpanRecord]) -> str:
    """Session id of the trace, "" when no span names one."""
    for key in SESSION_KEYS:
        for record in records:
            value = record.attributes.get(key)
            if isinstance(value, str) and value:
                return value[:200]
    return ""
