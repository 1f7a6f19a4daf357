"""Attributes of spans and records, cleaned the same way in the app and in the receiver (S01, S06)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from aftercheck_schemas.sessions import STABLE_KEYS, STABLE_SCOPE
from aftercheck_schemas.trace import Chunk, LogRecord, SpanEvent, SpanRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aftercheck_schemas.slimming import Slimmer
    from aftercheck_schemas.trace import Json

MAX_ATTRIBUTES: Final = 1_024
CHUNK_EVENT: Final = "gen_ai.content.completion.chunk"
"""One event per streamed piece; the span's own attributes hold the whole answer."""
RESOURCE_KEYS: Final = ("service.name", "service.version", "deployment.environment", "deployment.environment.name")
_DUPLICATES: Final = {"gen_ai.task.input": "traceloop.entity.input", "gen_ai.task.output": "traceloop.entity.output"}
_CONTENT_KEYS: Final = frozenset(
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
_CONTENT_PREFIXES: Final = ("gen_ai.prompt.", "gen_ai.completion.", "llm.input_messages.", "llm.output_messages.",
                            "retrieval.documents.", "ai.prompt", "ai.response", "ai.toolCall")  # fmt: skip


def is_content(name: str) -> bool:
    """Whether the attribute holds text of a prompt, an answer or a document."""
    return name in _CONTENT_KEYS or name.startswith(_CONTENT_PREFIXES)


def attributes(given: Mapping[str, object], slimmer: Slimmer, content: bool) -> tuple[dict[str, Json], list[str]]:
    """Return the clean attributes and the names of those that were cut; at most `MAX_ATTRIBUTES` are kept.

    Args:
        given: attributes as an instrumentation wrote them.
        slimmer: cleans the values of this trace.
        content: False drops all text of prompts, answers and documents.
    """
    clean: dict[str, Json] = {}
    truncated: list[str] = []
    for number, (name, value) in enumerate(given.items()):
        if number >= MAX_ATTRIBUTES:
            break
        twin = _DUPLICATES.get(name)
        if (twin is not None and given.get(twin) == value) or not (content or not is_content(name)):
            continue
        key = name if name.isascii() and name.replace(".", "").replace("_", "").isalpha() else slimmer.text(name)
        if name in STABLE_KEYS:
            clean[key] = slimmer.text(str(value), STABLE_SCOPE)
            continue
        clean[key], cut = slimmer.attribute(value, name)
        if cut:
            truncated.append(key)
    return clean, truncated


def event_wanted(name: str, content: bool) -> bool:
    """Whether an event of a span is kept."""
    return name != CHUNK_EVENT and (content or name == "exception")


def event(
    name: str, time: int, given: Mapping[str, object], slimmer: Slimmer, content: bool
) -> tuple[SpanEvent, list[str]]:
    """Return the clean event and the names of what was cut."""
    if name == "exception":  # a stack trace is long, full of paths, and nobody reads it here
        given = {key: value for key, value in given.items() if key != "exception.stacktrace"}
    clean, cut = attributes(given, slimmer, content)
    return SpanEvent(name=slimmer.text(name)[:1_000], time=time, attributes=clean), [f"{name}:{one}" for one in cut]


def resource(given: Mapping[str, object], slimmer: Slimmer) -> dict[str, Json]:
    """The four attributes of a resource that anything reads."""
    return {key: slimmer.attribute(given[key])[0] for key in RESOURCE_KEYS if key in given}


def cleaned(chunk: Chunk, slimmer: Slimmer) -> Chunk:
    """Clean a chunk that came from elsewhere, as the SDK cleans its own spans."""
    return Chunk(
        resource=resource(chunk.resource, slimmer),
        spans=tuple(_span(span, slimmer) for span in chunk.spans),
        logs=tuple(_log(log, slimmer) for log in chunk.logs),
    )


def _span(span: SpanRecord, slimmer: Slimmer) -> SpanRecord:
    clean, truncated = attributes(span.attributes, slimmer, True)
    events: list[SpanEvent] = []
    for one in span.events:
        if event_wanted(one.name, True):
            made, cut = event(one.name, one.time, one.attributes, slimmer, True)
            events.append(made)
            truncated += cut
    return msgspec.structs.replace(
        span,
        name=slimmer.text(span.name)[:1_000],
        status_message=slimmer.text(span.status_message)[:4_000],
        attributes=clean,
        events=tuple(events),
        truncated=(*span.truncated, *truncated),
        dropped_attributes=span.dropped_attributes + max(0, len(span.attributes) - MAX_ATTRIBUTES),
    )


def _log(log: LogRecord, slimmer: Slimmer) -> LogRecord:
    clean, _ = attributes(log.attributes, slimmer, True)
    return msgspec.structs.replace(
        log, event_name=slimmer.text(log.event_name)[:1_000], attributes=clean, body=slimmer.attribute(log.body)[0]
    )
