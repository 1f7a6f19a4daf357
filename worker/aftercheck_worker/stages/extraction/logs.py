"""Source 6: log records (and span events) of the GenAI convention, joined by span id.

`gen_ai.client.inference.operation.details` holds whole messages; `gen_ai.*.message` and `gen_ai.choice` hold one
message each in their body, and on older span events in their attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aftercheck_worker.stages.extraction import semconv
from aftercheck_worker.stages.extraction.decoding import loads
from aftercheck_worker.stages.extraction.messages import Content, Turn, turn_of, turns_of
from aftercheck_worker.stages.extraction.shape import is_dict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aftercheck_schemas import Json, LogRecord, SpanEvent
    from aftercheck_schemas.interaction import Role

_DETAILS = "gen_ai.client.inference.operation.details"
_ROLES: dict[str, Role] = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}


def by_span(logs: Iterable[LogRecord]) -> dict[str, list[LogRecord]]:
    """Records of each span id, in their order; records without a span are left out."""
    grouped: dict[str, list[LogRecord]] = {}
    for log in logs:
        if log.span_id:
            grouped.setdefault(log.span_id, []).append(log)
    return grouped


def read(logs: Iterable[LogRecord], events: Iterable[SpanEvent] = ()) -> Content | None:
    """Read the records of one span, None when none of them holds a message."""
    inputs: list[Turn] = []
    outputs: list[Turn] = []
    for log in logs:
        if log.event_name == _DETAILS:
            details = semconv.read(log.attributes)
            if details is not None:
                return details
        _add(log.event_name, log.body, inputs, outputs)
    for event in events:
        if event.name.startswith("gen_ai."):
            _add(event.name, _event_body(event), inputs, outputs)
    if not inputs and not outputs:
        return None
    return Content(tuple(inputs) or None, tuple(outputs) or None)


def _add(name: str, body: Json, inputs: list[Turn], outputs: list[Turn]) -> None:
    if name == "gen_ai.choice":
        turn = turn_of(loads(body), "assistant")
        if turn is not None:
            outputs.append(turn)
    elif name == "gen_ai.content.prompt":
        inputs.extend(turns_of(loads(body), "user"))
    elif name == "gen_ai.content.completion":
        outputs.extend(turns_of(loads(body), "assistant"))
    elif name in _ROLES:
        value = loads(body)
        turn = turn_of({"role": _ROLES[name], **value} if is_dict(value) else value, _ROLES[name])
        if turn is not None:
            inputs.append(turn)


def _event_body(event: SpanEvent) -> Json:
    attributes = event.attributes
    for key in ("gen_ai.event.content", "gen_ai.prompt", "gen_ai.completion"):
        if key in attributes:
            return attributes[key]
    body = dict(attributes)
    for key in ("message", "tool_calls"):
        if key in body:
            body[key] = loads(body[key])
    return body
