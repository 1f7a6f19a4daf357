"""Source 7, the last resort: input and output of the root, and log records whose span never came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from aftercheck_schemas import SpanRecord
from aftercheck_worker.stages.extraction import logs
from aftercheck_worker.stages.extraction.calls import Call
from aftercheck_worker.stages.extraction.messages import Content, Turn
from aftercheck_worker.stages.extraction.parts import Part
from aftercheck_worker.stages.extraction.root import answer_in, question_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_schemas import LogRecord, Trace
    from aftercheck_worker.stages.extraction.lineage import Lineage

_ROOT_KINDS: Final = {
    "traceloop.span.kind": ("workflow", "agent"),
    "openinference.span.kind": ("CHAIN", "AGENT"),
    "langfuse.observation.type": ("span", "agent", "chain"),
    "gen_ai.operation.name": ("invoke_agent", "invoke_workflow"),
}


def root_call(trace: Trace, lineage: Lineage) -> Call | None:
    """The root of a trace without model calls as a call without a prompt, None unless it returned a text."""
    for span in trace.spans:
        if not lineage.is_top(span) or not _is_app_root(span):
            continue
        question, answer = question_in([span]), answer_in(span)
        if question and answer:
            return _call(span, answer, None)
    return None


def filled(found: list[Call], lineage: Lineage) -> list[Call]:
    """Give the last call its root's output when the call itself recorded nothing (Anthropic's own spans, O-22)."""
    last = found[-1]
    if not last.is_empty or last.span.status == "error":
        return found
    above = lineage.ancestors(last.span)
    answer = answer_in(above[-1]) if above else ""
    if not answer:
        return found
    return [*found[:-1], _call(last.span, answer, last)]


def call_of_logs(trace: Trace, span_id: str, records: Sequence[LogRecord]) -> Call | None:
    """A call known from its log records only; without a choice it is a stream that nobody read."""
    content = logs.read(records)
    if content is None:
        return None
    times = [record.time for record in records]
    attributes = {key: value for record in records for key, value in record.attributes.items()}
    attributes["gen_ai.is_streaming"] = content.outputs is None
    span = SpanRecord(
        trace_id=trace.trace_id, span_id=span_id, start=min(times), end=max(times), attributes=attributes
    )
    texts = tuple(text for turn in content.outputs or () if (text := turn.text.strip()))
    return Call(span, content, texts, finish="" if content.outputs is None else None)


def _call(span: SpanRecord, answer: str, empty: Call | None) -> Call:
    content = Content(None, (Turn("assistant", (Part("text", answer),)),))
    if empty is None:
        return Call(span, content, (answer,))
    return msgspec.structs.replace(empty, content=content, texts=(answer,))


def _is_app_root(span: SpanRecord) -> bool:
    return any(span.attributes.get(key) in kinds for key, kinds in _ROOT_KINDS.items())
