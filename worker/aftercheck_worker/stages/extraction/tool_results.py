"""Results of tools as passages (context D): from the prompt, and from the tools' own spans."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from aftercheck_schemas import Passage
from aftercheck_worker.stages.extraction.decoding import dumps, is_cut, loads, unquoted
from aftercheck_worker.stages.extraction.messages import Turn
from aftercheck_worker.stages.extraction.shape import as_text, first_text, is_dict, is_list

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aftercheck_schemas import Json, SpanRecord

_LISTS: Final = (
    "results",
    "documents",
    "docs",
    "items",
    "matches",
    "hits",
    "chunks",
    "passages",
    "nodes",
    "contexts",
    "snippets",
)
_TEXTS: Final = ("page_content", "text", "content", "snippet", "body", "document", "passage", "chunk")
_LABELS: Final = frozenset(
    {"id", "type", "title", "name", "source", "url", "uri", "link", "score", "distance", "metadata", "rank", "page"}
)
_FAILED: Final = re.compile(
    r"\s*(?:error\b\s*[:\-]|error (?:invoking|executing|calling|running)|traceback \(most recent|exception\b\s*:|"
    r"an error occurred|(?:tool|function|request|call) (?:call )?(?:failed|error)|\w*(?:Error|Exception):)",
    re.IGNORECASE,
)
_MAX_DEPTH: Final = 6
_MAX_TEXTS: Final = 500


class ToolOutput(NamedTuple):
    """The texts of one tool result. A failed tool is no evidence; where `cut`, silence proves nothing."""

    texts: tuple[str, ...]
    ok: bool
    cut: bool = False


class ToolSpan(NamedTuple):
    """One execution of a tool, as its own span records it."""

    call_id: str
    name: str
    arguments: str
    output: ToolOutput
    end: int


def output_of(content: Json, failed: bool = False) -> ToolOutput:
    """Read a tool result of any shape: text, JSON text, parts, a LangChain ToolMessage, lists of documents."""
    value, message_failed = _unwrapped(content, 0)
    texts = tuple(text for text in _texts(value, 0)[:_MAX_TEXTS] if text.strip())
    failed = failed or message_failed or _says_error(value, texts)
    return ToolOutput(texts, not failed, any(map(is_cut, texts)))


def in_prompt(turns: Sequence[Turn], spans: Sequence[ToolSpan]) -> list[Passage]:
    """Passages of every tool result in the prompt; name, arguments and time come from the call and its span."""
    calls = {part.id: part for turn in turns for part in turn.parts if part.kind == "tool_call" and part.id}
    by_id = {span.call_id: span for span in spans if span.call_id}
    found: list[Passage] = []
    number = 0
    for turn in turns:
        for part in turn.parts:
            if part.kind != "tool_result":
                continue
            number += 1
            call, span = calls.get(part.id), by_id.get(part.id)
            name = part.name or (call.name if call else "") or (span.name if span else "")
            output = output_of(part.content, part.failed)
            found.extend(
                passages(
                    ToolSpan(
                        part.id or f"{name or 'tool'}:{number}",
                        name,
                        call.arguments if call else (span.arguments if span else ""),
                        ToolOutput(output.texts, output.ok and (span is None or span.output.ok), output.cut),
                        span.end if span else 0,
                    )
                )
            )
    return found


def passages(tool: ToolSpan) -> list[Passage]:
    """One passage per text. A failed tool without text leaves one that says so, because silence would hide it."""
    texts = tool.output.texts
    if not texts and not tool.output.ok:
        texts = ("error",)
    base = tool.call_id or tool.name or "tool"
    return [
        Passage(
            source_id=base if len(texts) == 1 else f"{base}#{number}",
            text=text,
            kind="tool_result",
            ok=tool.output.ok,
            elided=tool.output.cut,
            name=tool.name,
            arguments=tool.arguments,
            at=tool.end,
        )
        for number, text in enumerate(texts, 1)
    ]


def tool_spans(spans: Iterable[SpanRecord]) -> list[ToolSpan]:
    """All executions of tools in the trace, in order. The same call recorded by two spans counts once."""
    found: list[ToolSpan] = []
    seen: set[str] = set()
    for span in spans:
        if not is_tool(span):
            continue
        tool = _tool_span(span)
        key = tool.call_id or f"{tool.name}\n{tool.output.texts}"
        if key not in seen:
            seen.add(key)
            found.append(tool)
    return found


def is_tool(span: SpanRecord) -> bool:
    """True for a span that executes a tool, in any scheme."""
    attributes = span.attributes
    return (
        attributes.get("gen_ai.operation.name") == "execute_tool"
        or attributes.get("traceloop.span.kind") == "tool"
        or attributes.get("openinference.span.kind") == "TOOL"
        or attributes.get("langfuse.observation.type") == "tool"
        or "ai.toolCall.name" in attributes
    )


def _tool_span(span: SpanRecord) -> ToolSpan:
    attributes = span.attributes
    raw = next((attributes[key] for key in _RESULT_KEYS if attributes.get(key) is not None), None)
    given = next((attributes[key] for key in _ARGUMENT_KEYS if attributes.get(key) is not None), None)
    call_id = first_text(attributes, ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.call.id"))
    return ToolSpan(
        call_id or _nested_call_id(raw),
        first_text(attributes, ("gen_ai.tool.name", "ai.toolCall.name", "tool.name", "traceloop.entity.name"))
        or span.name,
        _arguments(given),
        output_of(unquoted(raw), failed=span.status == "error"),
        span.end,
    )


_RESULT_KEYS: Final = (
    "gen_ai.tool.call.result",
    "ai.toolCall.result",
    "traceloop.entity.output",
    "output.value",
    "langfuse.observation.output",
)
_ARGUMENT_KEYS: Final = (
    "gen_ai.tool.call.arguments",
    "ai.toolCall.args",
    "tool.parameters",
    "traceloop.entity.input",
    "input.value",
    "langfuse.observation.input",
)


def _arguments(given: Json) -> str:
    """The arguments as JSON text; LangChain wraps them in `inputs`, decorators in `args` and `kwargs`."""
    value = loads(given)
    if is_dict(value):
        inner = value.get("inputs", value.get("kwargs"))
        if inner and is_dict(inner):
            return dumps(inner)
        args = value.get("args")
        if is_list(args):
            return dumps(args)
    return as_text(given) or ("" if given is None else dumps(given))


def _nested_call_id(raw: Json) -> str:
    value = loads(raw)
    for _ in range(3):
        if not is_dict(value):
            return ""
        if found := as_text(value.get("tool_call_id")):
            return found
        value = value.get("output", value.get("kwargs", value.get("data")))
    return as_text(value.get("tool_call_id")) if is_dict(value) else ""


def _unwrapped(content: Json, depth: int) -> tuple[Json, bool]:
    """Take a ToolMessage constructor or dump apart; its `status` says whether the tool failed."""
    value = loads(content)
    if depth > _MAX_DEPTH or not is_dict(value):
        return value, False
    if value.get("lc") is not None or value.get("type") == "tool" or "tool_call_id" in value:
        inner = value.get("kwargs", value.get("data"))
        body = inner if is_dict(inner) else value
        if "content" in body:
            found, failed = _unwrapped(body["content"], depth + 1)
            return found, failed or body.get("status") == "error"
    output = value.get("output", value.get("outputs"))
    if is_dict(output) and ("lc" in output or "data" in output or "tool_call_id" in output):
        return _unwrapped(output, depth + 1)
    return value, False


def _texts(value: Json, depth: int) -> list[str]:
    if value is None or value == "" or depth > _MAX_DEPTH:
        return []
    if isinstance(value, str):
        inner = loads(value)
        return [value] if isinstance(inner, str) else _texts(inner, depth + 1)
    if is_list(value):
        return _list_texts(value, depth)
    if is_dict(value):
        return _dict_texts(value, depth)
    return [as_text(value) or dumps(value)]


def _list_texts(value: list[Json], depth: int) -> list[str]:
    if all(isinstance(item, str) or (is_dict(item) and _text_of(item)) for item in value):
        found: list[str] = []
        for item in value[:_MAX_TEXTS]:
            if is_dict(item):
                part = _text_of(item)
                found.extend(_texts(part, depth + 1) if item.get("type") in ("text", "output_text") else [part])
            elif isinstance(item, str):
                found.extend(_texts(item, depth + 1))
        return found
    return [dumps(value)] if value else []


def _dict_texts(value: dict[str, Json], depth: int) -> list[str]:
    """A list of documents becomes one text each, and what stands beside it one more, so that nothing is lost."""
    if not value:
        return []
    if text := _text_of(value):
        return _texts(text, depth + 1) if value.get("type") == "text" else [text]
    for key in _LISTS:
        inner = value.get(key)
        if is_list(inner) and inner and all(isinstance(item, str) or is_dict(item) for item in inner):
            rest = {name: item for name, item in value.items() if name != key}
            return _list_texts(inner, depth + 1) + ([dumps(rest)] if rest else [])
    if len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str) and next(iter(value)) in ("result", "output", "content", "text", "answer", "data"):
            return _texts(only, depth + 1)
    return [dumps(value)]


def _text_of(item: dict[str, Json]) -> str:
    """The text of a document-like object, with its title; "" when it holds more than text and labels."""
    key = next((name for name in _TEXTS if isinstance(item.get(name), str) and item[name]), None)
    if key is None or not (set(item) - {key} <= _LABELS):
        return ""
    text, title = as_text(item[key]), as_text(item.get("title"))
    return f"{title}\n{text}" if title else text


def _says_error(value: Json, texts: tuple[str, ...]) -> bool:
    if is_dict(value):
        error = value.get("error")
        if (error and not isinstance(error, bool)) or error is True:
            return True
        if value.get("isError") is True or value.get("is_error") is True:
            return True
        return value.get("success") is False or value.get("ok") is False
    return len(texts) == 1 and _FAILED.match(texts[0]) is not None
