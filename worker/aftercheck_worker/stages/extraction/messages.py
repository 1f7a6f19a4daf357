"""Turns of a dialogue and their parts, read from any of the message shapes that instrumentations record.

One reader for the shapes of the OTel GenAI convention, OpenAI (chat and Responses), Anthropic, LangChain,
LangGraph, Vercel AI SDK and pydantic-ai: they differ in key names, not in kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from aftercheck_worker.stages.extraction import parts as parts_module
from aftercheck_worker.stages.extraction.decoding import is_document, loads
from aftercheck_worker.stages.extraction.parts import Part, part_of, tool_call_of
from aftercheck_worker.stages.extraction.shape import as_text, is_dict, is_list

if TYPE_CHECKING:
    from aftercheck_schemas import Json
    from aftercheck_schemas.interaction import Role

_ROLES: Final[dict[str, Literal["system", "user", "assistant", "tool"]]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "aimessagechunk": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_MAX_TURNS: Final = 5_000
_MAX_DEPTH: Final = 6
_GLUE: Final = tuple(" \n\t.,;:!?)]}»”’%")


class Turn(msgspec.Struct, frozen=True):
    """One message: its role, its parts in order, and the finish reason where one was recorded."""

    role: Role
    parts: tuple[Part, ...]
    finish: str | None = None

    @property
    def text(self) -> str:
        """All text parts as one string; reasoning is not part of it."""
        texts = [part.text for part in self.parts if part.kind == "text" and part.text]
        return texts[0] if len(texts) == 1 else _joined(texts)


class Content(msgspec.Struct, frozen=True):
    """What one model call was given and what it said.

    `inputs` and `outputs` are None when nothing of the kind was recorded. The flags are False when the
    attribute was cut so that its JSON had to be repaired or could not be read.
    """

    inputs: tuple[Turn, ...] | None = None
    outputs: tuple[Turn, ...] | None = None
    input_intact: bool = True
    output_intact: bool = True


def turns_of(value: Json, default: Role, depth: int = 0) -> tuple[Turn, ...]:
    """Read a list of messages, one message, a request or response body that holds them, or plain text."""
    if depth > _MAX_DEPTH or value is None:
        return ()
    if is_list(value):
        turns: list[Turn] = []
        for item in value[:_MAX_TURNS]:
            if is_list(item):
                turns.extend(turns_of(item, default, depth + 1))
            elif (turn := turn_of(item, default)) is not None:
                turns.append(turn)
        return tuple(turns)
    if is_dict(value):
        for key in ("messages", "choices", "generations"):
            if is_list(value.get(key)):
                return turns_of(value[key], default, depth + 1)
    turn = turn_of(value, default)
    return () if turn is None else (turn,)


def turn_of(item: Json, default: Role) -> Turn | None:
    """Read one message, None for what is none."""
    if isinstance(item, str):
        return Turn(default, (Part("text", item),)) if item else None
    if not is_dict(item):
        return None
    message = _unwrapped(item)
    name = message.get("role") or message.get("type")
    role: Role = _ROLES.get(name.lower(), default) if isinstance(name, str) else default
    found = _parts(message)
    if not found and message.get("parts") is None and message.get("content") is None:
        single = part_of(message)
        found = [] if single is None else [single]
    if role == "tool":
        found = [_as_tool_result(part, message) for part in found]
    finish = message.get("finish_reason", item.get("finish_reason"))
    return Turn(role, tuple(found), finish if isinstance(finish, str) else None)


def _unwrapped(item: dict[str, Json]) -> dict[str, Json]:
    """LangChain constructors keep the message in `kwargs`, its dumps in `data`, choices in `message`."""
    for key in ("message", "kwargs", "data"):
        inner = item.get(key)
        if is_dict(inner) and ("role" in inner or "content" in inner or "type" in inner or "tool_calls" in inner):
            nested = inner.get("kwargs")
            return nested if is_dict(nested) and "content" in nested else inner
    return item


def _parts(message: dict[str, Json]) -> list[Part]:
    found: list[Part] = []
    raw = message.get("parts")
    content = raw if raw is not None else message.get("content")
    if isinstance(content, str) and content.startswith('[{"') and is_document(content):
        content = _typed_parts(content)
    if is_list(content):
        found = [part for part in map(part_of, content[:_MAX_TURNS]) if part is not None]
    elif is_dict(content):
        single = part_of(content)
        found = [] if single is None else [single]
    elif text := as_text(content):
        found = [Part("text", text)]
    calls = message.get("tool_calls", message.get("toolCalls"))
    if is_list(calls):
        known = {part.id for part in found if part.kind == "tool_call" and part.id}
        found.extend(call for call in map(tool_call_of, calls) if call is not None and call.id not in known)
    return found


def _typed_parts(content: str) -> Json:
    """Older schemes dump a list of parts into the content string; any other JSON is text that somebody wrote."""
    value = loads(content)
    if is_list(value) and all(is_dict(item) and item.get("type") in parts_module.TYPES for item in value):
        return value
    return content


def _as_tool_result(part: Part, message: dict[str, Json]) -> Part:
    """The text of a tool message is the tool's result, whatever its part is called."""
    if part.kind not in ("text", "tool_result"):
        return part
    call_id = part.id or as_text(message.get("tool_call_id")) or as_text(message.get("id"))
    failed = part.failed or message.get("status") == "error" or message.get("is_error") is True
    content = part.content if part.kind == "tool_result" else part.text
    return Part(
        "tool_result", id=call_id, name=part.name or as_text(message.get("name")), content=content, failed=failed
    )


def _joined(texts: list[str]) -> str:
    """Citations split one sentence into parts, other apps write one paragraph per part."""
    joined = ""
    for text in texts:
        glued = not joined or joined[-1].isspace() or text.startswith(_GLUE)
        joined = joined + text if glued else f"{joined}\n{text}"
    return joined
