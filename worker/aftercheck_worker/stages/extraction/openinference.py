"""Source 3: OpenInference, flattened `llm.input_messages.N.message.*` and `llm.output_messages.N.message.*`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aftercheck_worker.stages.extraction.decoding import decode
from aftercheck_worker.stages.extraction.indexed import listed, put
from aftercheck_worker.stages.extraction.messages import Content, Turn, turn_of, turns_of
from aftercheck_worker.stages.extraction.shape import is_dict

if TYPE_CHECKING:
    from aftercheck_schemas import Json
    from aftercheck_schemas.interaction import Role

_INPUT = "llm.input_messages."
_OUTPUT = "llm.output_messages."


def read(attributes: dict[str, Json]) -> Content | None:
    """Read the flattened messages; where a side has none, `input.value` or `output.value` stands in."""
    inputs: dict[int, dict[str, Json]] = {}
    outputs: dict[int, dict[str, Json]] = {}
    for key, value in attributes.items():
        if key.startswith(_INPUT):
            put(inputs, key[len(_INPUT) :], value)
        elif key.startswith(_OUTPUT):
            put(outputs, key[len(_OUTPUT) :], value)
    if "openinference.span.kind" not in attributes and not inputs and not outputs:
        return None
    finish = attributes.get("llm.finish_reason")
    given = _turns(inputs, "user", None) or _value(attributes.get("input.value"), "user")
    said = _turns(outputs, "assistant", finish) or _value(attributes.get("output.value"), "assistant")
    return None if given is None and said is None else Content(given, said)


def _turns(messages: dict[int, dict[str, Json]], default: Role, finish: Json) -> tuple[Turn, ...] | None:
    turns: list[Turn] = []
    for index in sorted(messages):
        flat = messages[index].get("message")
        if not is_dict(flat):
            continue
        turn = turn_of(_message(flat, finish), default)
        if turn is not None:
            turns.append(turn)
    return tuple(turns) or None


def _message(flat: dict[str, Json], finish: Json) -> dict[str, Json]:
    """The nested message that the flattened keys came from."""
    message: dict[str, Json] = {"role": flat.get("role")}
    contents = [part for item in listed(flat.get("contents")) if (part := _part(item)) is not None]
    message["content"] = contents or flat.get("content")
    calls = [item.get("tool_call") for item in listed(flat.get("tool_calls")) if is_dict(item)]
    if calls:
        message["tool_calls"] = calls
    for key in ("tool_call_id", "name"):
        if key in flat:
            message[key] = flat[key]
    if finish is not None:
        message["finish_reason"] = finish
    return message


def _part(item: Json) -> Json:
    if not is_dict(item):
        return None
    content = item.get("message_content")
    if not is_dict(content):
        return None
    call = item.get("tool_call")
    if is_dict(call):
        return {"type": "tool_call", **call}
    return content


def _value(value: Json, default: Role) -> tuple[Turn, ...] | None:
    """A request or response body, or plain text; any other document says nothing about a dialogue."""
    if not isinstance(value, str) or not value:
        return None
    decoded = decode(value).value
    if is_dict(decoded) and not any(key in decoded for key in ("messages", "choices", "generations", "content")):
        return None
    if isinstance(decoded, str):
        decoded = decoded.removeprefix("assistant: ")
    return turns_of(decoded, default) or None
