"""One part of a message: text, a tool call, a tool result, a document, or a medium we cannot read."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from aftercheck_worker.stages.extraction.decoding import dumps, loads
from aftercheck_worker.stages.extraction.shape import as_text, first_text, is_dict, is_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from aftercheck_schemas import Json

PartKind = Literal["text", "tool_call", "tool_result", "document", "media", "reasoning"]


class Part(msgspec.Struct, frozen=True):
    """One part of a message.

    Attributes:
        text: of text, reasoning and documents; never raw base64.
        id: of the tool call that is made or answered.
        name: of the tool; of a document its title; of a medium `document` when a file was given.
        arguments: of a tool call, as JSON text.
        content: of a tool result, as recorded.
        failed: the result says that the tool failed.
    """

    kind: PartKind
    text: str = ""
    id: str = ""
    name: str = ""
    arguments: str = ""
    content: Json = None
    failed: bool = False


def part_of(item: Json) -> Part | None:
    """Read one part of any known shape, None for what holds nothing."""
    if isinstance(item, str):
        return Part("text", item) if item else None
    if not is_dict(item):
        return None
    kind = item.get("type")
    reader = _READERS.get(kind) if isinstance(kind, str) else None
    if reader is not None:
        return reader(item)
    text = _own_text(item)
    return Part("text", text) if text else None


def tool_call_of(item: Json) -> Part | None:
    """Read one entry of a `tool_calls` list, or a tool call part."""
    if not is_dict(item):
        return None
    inner = item.get("function", item.get("tool_call"))
    source = inner if is_dict(inner) else item
    raw = next((source[key] for key in ("arguments", "input", "args") if source.get(key) is not None), None)
    return Part(
        "tool_call",
        id=first_text(item, ("id", "toolCallId", "call_id", "tool_call_id")),
        name=first_text(source, ("name", "toolName")) or first_text(item, ("name", "toolName")),
        arguments=_arguments(raw),
    )


def _arguments(raw: Json) -> str:
    """Arguments as compact JSON text, whether they came as text or as a structure."""
    value = loads(raw)
    return value if isinstance(value, str) else ("" if value is None else dumps(value))


def _own_text(item: dict[str, Json]) -> str:
    return first_text(item, ("text", "content", "refusal", "output_text"))


def _text(item: dict[str, Json]) -> Part | None:
    text = _own_text(item)
    return Part("text", text) if text else None


def _reasoning(item: dict[str, Json]) -> Part:
    return Part("reasoning", first_text(item, ("content", "text", "thinking", "reasoning")))


def _tool_result(item: dict[str, Json]) -> Part:
    keys = ("response", "result", "content", "output", "text")
    content = next((item[key] for key in keys if item.get(key) is not None), None)
    failed = item.get("is_error") is True or item.get("isError") is True or item.get("status") == "error"
    if is_dict(content) and isinstance(content.get("type"), str) and "value" in content:
        failed = failed or str(content["type"]).startswith("error")
        content = content["value"]
    return Part(
        "tool_result",
        id=first_text(item, ("id", "tool_use_id", "toolCallId", "call_id", "tool_call_id")),
        name=first_text(item, ("name", "toolName", "tool_name")),
        content=content,
        failed=failed,
    )


def _blob(item: dict[str, Json]) -> Part:
    mime = first_text(item, ("mime_type", "mediaType", "media_type"))
    data = first_text(item, ("content", "data", "blob"))
    if mime.startswith("text/") or mime in ("application/json", "application/xml"):
        text = _decoded(data)
        if text:
            return Part("document", text, name=first_text(item, ("title", "name", "filename")))
    return Part("media", name="document" if item.get("modality") == "document" else "")


def _document(item: dict[str, Json]) -> Part:
    """Anthropic documents and search results; OpenInference dumps them into the part's text."""
    dumped = loads(item.get("text"))
    source = dumped if is_dict(dumped) else item
    name = first_text(source, ("title", "name", "filename"))
    body = source.get("source")
    text = ""
    if is_dict(body):
        text = _content_text(body.get("content")) or as_text(body.get("data"))
        if body.get("type") == "base64":
            mime = as_text(body.get("media_type"))
            text = _decoded(text) if mime.startswith("text/") else ""
    text = text or _content_text(source.get("content"))
    if not text and source is item:
        text = as_text(item.get("text"))
    return Part("document", text, name=name or as_text(body)) if text else Part("media", name="document")


def _content_text(content: Json) -> str:
    if is_list(content):
        return "\n".join(text for entry in content if is_dict(entry) and (text := _own_text(entry)))
    return as_text(content)


def _media(item: dict[str, Json]) -> Part:
    is_file = item.get("type") in ("file", "input_file") or item.get("modality") == "document"
    return Part("media", name="document" if is_file else "")


def _decoded(data: str) -> str:
    try:
        return b64decode(data, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


_READERS: Final[dict[str, Callable[[dict[str, Json]], Part | None]]] = {
    **dict.fromkeys(("text", "input_text", "output_text", "refusal"), _text),
    **dict.fromkeys(("reasoning", "thinking", "redacted_thinking"), _reasoning),
    **dict.fromkeys(
        ("tool_call", "tool_use", "tool-call", "function_call", "server_tool_use", "server_tool_call"), tool_call_of
    ),
    **dict.fromkeys(
        (
            "tool_call_response",
            "tool_result",
            "tool-result",
            "function_call_output",
            "server_tool_call_response",
            "web_search_tool_result",
        ),
        _tool_result,
    ),
    "blob": _blob,
    **dict.fromkeys(("document", "search_result"), _document),
    **dict.fromkeys(
        ("uri", "file", "image", "image_url", "input_image", "input_file", "input_audio", "audio", "video"), _media
    ),
}
TYPES: Final = frozenset(_READERS)
"""Type names of parts that this module reads."""
