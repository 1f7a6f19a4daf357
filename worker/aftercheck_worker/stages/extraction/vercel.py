"""Source 5: Vercel AI SDK, `ai.prompt`, `ai.prompt.messages`, `ai.response.text` and `ai.response.toolCalls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aftercheck_worker.stages.extraction.decoding import decode, loads
from aftercheck_worker.stages.extraction.messages import Content, Turn, turns_of
from aftercheck_worker.stages.extraction.parts import Part, tool_call_of
from aftercheck_worker.stages.extraction.shape import as_text, is_dict, is_list

if TYPE_CHECKING:
    from aftercheck_schemas import Json


def read(attributes: dict[str, Json]) -> Content | None:
    """Read the attributes of a `generateText` or `streamText` span, inner or outer; None when there are none."""
    given, intact = _given(attributes)
    said = _said(attributes)
    return None if given is None and said is None else Content(given, said, intact, True)


def _given(attributes: dict[str, Json]) -> tuple[tuple[Turn, ...] | None, bool]:
    raw = attributes.get("ai.prompt.messages")
    if raw is not None:
        decoded = decode(raw)
        return turns_of(decoded.value, "user"), decoded.intact
    raw = attributes.get("ai.prompt")
    if raw is None:
        return None, True
    decoded = decode(raw)
    value = decoded.value
    if not is_dict(value):
        return turns_of(value, "user"), decoded.intact
    turns = turns_of(value.get("system"), "system")
    prompt = value.get("messages") or value.get("prompt")
    return turns + turns_of(prompt, "user"), decoded.intact


def _said(attributes: dict[str, Json]) -> tuple[Turn, ...] | None:
    text = attributes.get("ai.response.text", attributes.get("ai.result.text"))
    text = text if text is not None else attributes.get("ai.response.object")
    calls = loads(attributes.get("ai.response.toolCalls", attributes.get("ai.result.toolCalls")))
    parts = [Part("text", text)] if isinstance(text, str) and text else []
    if is_list(calls):
        parts.extend(call for call in map(tool_call_of, calls) if call is not None)
    if not parts and text is None:
        return None
    finish = attributes.get("ai.response.finishReason", attributes.get("ai.finishReason"))
    return (Turn("assistant", tuple(parts), as_text(finish) or None),)
