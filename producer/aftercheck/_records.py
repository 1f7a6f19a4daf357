"""What only the app knows: the documents it gave to the model, and the text it showed to the user."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, cast

from opentelemetry import trace

from aftercheck import _settings
from aftercheck._guard import never_raises, warn_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.trace import Span

CONTEXT = "aftercheck.context"
OUTPUT = "aftercheck.output"
RECORD_SPAN = "aftercheck.record"
MAX_DOCUMENTS = 1_000


@never_raises(None)
def record_context(docs: object, kind: str = "context", trust: float = 1.0, source_id: str | None = None) -> None:
    """Record the passages that the model is given, on the current span (adds to earlier calls).

    This is the surest route for hand-written retrieval: recorded context wins over anything guessed from prompts.

    Args:
        docs: a text, a mapping with `text`, `content` or `page_content` (and optionally `source_id` or `id`, `kind`,
            `trust`), an object with such an attribute (LangChain, LlamaIndex), or an iterable of these.
        kind: one of `aftercheck_schemas.vocabulary.EvidenceKind`.
        trust: 0..1, how far the source is believed (R10).
        source_id: name of the source; several documents get `-1`, `-2`, ... appended. Default `recorded-N`.
    """
    if not _settings.content_wanted():
        return
    entries = [_entry(doc, kind, trust) for doc in _documents(docs)]
    if not entries:
        return
    with_span(lambda span: _append(span, entries, source_id))


@never_raises(None)
def record_output(rendered: str) -> None:
    """Record what the user was shown, where it differs from the model's text (R42), on the current span."""
    if _settings.content_wanted():
        with_span(lambda span: span.set_attribute(OUTPUT, str(rendered)))


def with_span(action: Callable[[Span], None]) -> None:
    """Call `action` with the current recording span, else with a short span of our own."""
    span = trace.get_current_span()
    if span.is_recording():
        action(span)
        return
    if span.get_span_context().is_valid:
        return  # the trace is not sampled
    warn_once(
        "aftercheck.record_* was called outside a span, so it cannot be joined to an answer; "
        "call it inside the request's span or a @workflow function"
    )
    with trace.get_tracer("aftercheck").start_as_current_span(RECORD_SPAN) as own:
        action(own)


def _append(span: Span, entries: list[dict[str, object]], source_id: str | None) -> None:
    earlier = _recorded(span)
    for number, entry in enumerate(entries, start=1):
        if source_id is not None:
            entry["source_id"] = source_id if len(entries) == 1 else f"{source_id}-{number}"
        elif "source_id" not in entry:
            entry["source_id"] = f"recorded-{len(earlier) + number}"
    span.set_attribute(CONTEXT, json.dumps(earlier + entries, ensure_ascii=False))


def _recorded(span: Span) -> list[dict[str, object]]:
    attributes = cast("Mapping[str, object]", getattr(span, "attributes", None) or {})
    text = attributes.get(CONTEXT)
    return cast("list[dict[str, object]]", json.loads(text)) if isinstance(text, str) else []


def _documents(docs: object) -> list[object]:
    if docs is None:
        return []
    one = isinstance(docs, (str, Mapping)) or hasattr(docs, "page_content")
    if one or not isinstance(docs, Iterable):
        return [docs]
    return list(islice(cast("Iterable[object]", docs), MAX_DOCUMENTS))


def _entry(doc: object, kind: str, trust: float) -> dict[str, object]:
    entry: dict[str, object] = {
        "text": _text_of(doc),
        "kind": str(_field(doc, "kind") or kind),
        "trust": _trust(_field(doc, "trust"), trust),
    }
    name = _field(doc, "source_id") or _field(doc, "id") or _field(doc, "node_id")
    if name:
        entry["source_id"] = str(name)
    return entry


def _trust(own: object, default: float) -> float:
    return min(1.0, max(0.0, float(own if isinstance(own, (int, float)) else default)))


def _text_of(doc: object) -> str:
    if isinstance(doc, str):
        return doc
    for name in ("text", "content", "page_content"):
        value = _field(doc, name)
        if isinstance(value, str):
            return value
    return str(doc)


def _field(doc: object, name: str) -> object:
    if isinstance(doc, Mapping):
        return cast("Mapping[str, object]", doc).get(name)
    return cast("object", getattr(doc, name, None))
