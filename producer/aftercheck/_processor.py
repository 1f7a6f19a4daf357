"""The span processor: what runs on the app's threads. Everything slow is left to our own thread (R1, P1)."""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING, cast

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor

from aftercheck import _tags
from aftercheck._guard import describe, warn_once

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import Event, ReadableSpan, Span
    from opentelemetry.trace import SpanContext

    from aftercheck._buffer import SpanBuffer
    from aftercheck._shipper import Shipper

EVALUATOR = "aftercheck.evaluator"
CHUNK_EVENT = "gen_ai.content.completion.chunk"
"""As in `aftercheck_schemas.cleaning`, whose import would cost the app msgspec (R1); a test holds them equal."""
SPAN_BYTES = 2_500
ATTRIBUTE_BYTES = 100
EVENT_BYTES = 400
_SCALARS = frozenset({str, int, float, bool})
_RELEVANT_KEYS = frozenset(
    {
        "gen_ai.operation.name",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "llm.request.type",
        "traceloop.span.kind",
        "traceloop.entity.input",
        "traceloop.entity.output",
        "openinference.span.kind",
        "langfuse.observation.type",
        "input.value",
        "output.value",
        "aftercheck.context",
        "aftercheck.output",
    }
)
_RELEVANT_PREFIXES = ("gen_ai.", "llm.", "openinference.", "langfuse.", "retrieval.", "ai.", "shadow.")
_ON_EVERY_SPAN = frozenset({"gen_ai.agent.name", "gen_ai.conversation.id"})
_RESULT_EVENTS = ("db.query.result", "db.search.result")


class Processor(SpanProcessor):
    """Watches all spans of a provider and keeps those that say something of an LLM call.

    Never raises, never blocks, never touches the network: `on_end` estimates a size and appends.
    """

    def __init__(self, buffer: SpanBuffer, shipper: Shipper) -> None:
        self._buffer = buffer
        self._shipper = shipper
        self._evaluator_seen = False

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Count the span as open and write session and versions on it."""
        try:
            trace_id = cast("SpanContext", span.context).trace_id
            self._buffer.started(trace_id)
            _tags.apply(span, trace_id)
            if self._evaluator_seen or EVALUATOR in _plain(span):
                self._inherit_evaluator(span, parent_context)
        except Exception as error:  # noqa: BLE001 - the app must never see it
            warn_once(f"aftercheck could not watch a span ({describe(error)}); the app is not affected")

    def on_end(self, span: ReadableSpan) -> None:
        """Keep or skip a finished span."""
        try:
            kept = self._take(span)
        except Exception as error:  # noqa: BLE001 - the app must never see it
            self._buffer.failed()
            warn_once(f"aftercheck lost a span to an error of its own ({describe(error)}); the app is not affected")
            return
        if kept and self._shipper.asleep:
            self._shipper.start()

    def _take(self, span: ReadableSpan) -> bool:
        context = cast("SpanContext", span.context)
        attributes = _plain(span)
        if not context.trace_flags & 1 or attributes.get(EVALUATOR) is True:
            self._buffer.skipped(context.trace_id)
            return False
        parent = span.parent
        root = parent is None or parent.is_remote
        events: Sequence[Event] = getattr(span, "_events", None) or ()  # the property copies them
        relevant = is_relevant(attributes, events)
        size = estimate(attributes, events) if relevant or root else 0
        return self._buffer.ended(context.trace_id, size, span, relevant, root)

    def _inherit_evaluator(self, span: Span, parent_context: Context | None) -> None:
        """Spans below an evaluator's span belong to the evaluator, too: its judge must not be judged."""
        self._evaluator_seen = True
        parent = trace.get_current_span(parent_context)
        attributes = cast("Mapping[str, object]", getattr(parent, "attributes", None) or {})
        if attributes.get(EVALUATOR) is True:
            span.set_attribute(EVALUATOR, True)

    def shutdown(self) -> None:
        """Send what waits, for at most the shutdown timeout; what is left then is counted as dropped."""
        self._shipper.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits; False when something was left at the end of the time."""
        return self._shipper.flush(min(timeout_millis / 1000, self._shipper.exit_timeout_s)) == 0


def _plain(span: ReadableSpan) -> Mapping[str, object]:
    """The span's attributes as a plain dict; the SDK's public view of them is 10 times slower to walk."""
    plain = getattr(getattr(span, "_attributes", None), "_dict", None)
    return cast("Mapping[str, object]", plain) if type(plain) is dict else dict(span.attributes or {})


def is_relevant(attributes: Mapping[str, object], events: Sequence[Event]) -> bool:
    """Whether a span says anything of an LLM call, a retrieval or a tool."""
    if not _RELEVANT_KEYS.isdisjoint(attributes):
        return True
    for name in attributes:
        if name.startswith(_RELEVANT_PREFIXES) and name not in _ON_EVERY_SPAN:
            return True
    return bool(events) and any(event.name in _RESULT_EVENTS for event in events)


def estimate(attributes: Mapping[str, object], events: Sequence[Event]) -> int:
    """Bytes that a span holds in memory, roughly; empty chunk events cost only themselves."""
    values = attributes.values()
    size = SPAN_BYTES + ATTRIBUTE_BYTES * len(attributes)
    if _SCALARS.issuperset(map(type, values)):
        size += sum(map(getsizeof, values))
    else:
        size += sum(map(size_of, values))
    for event in events:
        size += EVENT_BYTES
        if event.name != CHUNK_EVENT and event.attributes:
            size += sum(map(size_of, event.attributes.values()))
    return size


def size_of(value: object) -> int:
    """Bytes of an attribute value; of a long sequence only a sample is looked at."""
    if isinstance(value, (tuple, list)):
        items = cast("Sequence[object]", value)
        sample = items[:32]
        return 64 + len(items) * sum(8 + size_of(item) for item in sample) // max(1, len(sample))
    if isinstance(value, dict):
        mapping = cast("dict[str, object]", value)
        return 64 + sum(100 + size_of(item) for item in mapping.values())
    return getsizeof(value)
