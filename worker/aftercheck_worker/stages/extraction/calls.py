"""Which spans are calls of a language model, and what each was given and said (sources 1 to 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from aftercheck_schemas import SpanRecord
from aftercheck_worker.stages.extraction import indexed, langfuse, logs, openinference, semconv, vercel
from aftercheck_worker.stages.extraction.decoding import dumps
from aftercheck_worker.stages.extraction.messages import Content
from aftercheck_worker.stages.extraction.shape import as_text, is_list, normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_schemas import Json, LogRecord

_OPERATIONS: Final = frozenset(
    ("chat", "text_completion", "generate_content", "completion", "generate", "responses", "message", "completions")
)
_VERCEL: Final = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")


class Call(msgspec.Struct, frozen=True):
    """One call of a language model.

    Attributes:
        texts: final text of every choice, stripped, empty ones left out.
        wants_tools: the output ends by asking for tools instead of answering.
        tools: names and arguments of the tool calls, for comparing twins.
        finish: finish reason of the first choice, None when none was recorded.
        twins: spans that recorded the same call and lost against this one.
    """

    span: SpanRecord
    content: Content
    texts: tuple[str, ...] = ()
    wants_tools: bool = False
    tools: str = ""
    finish: str | None = None
    twins: tuple[SpanRecord, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when neither input nor output was recorded."""
        return self.content.inputs is None and self.content.outputs is None

    @property
    def input_size(self) -> int:
        """Characters of the input: texts, arguments of tools and their results."""
        return sum(
            len(part.text) + len(part.arguments) + (len(dumps(part.content)) if part.content is not None else 0)
            for turn in self.content.inputs or ()
            for part in turn.parts
        )


def is_call(span: SpanRecord) -> bool:
    """True for a call of a language model; embeddings, re-ranking, agents and tools are none."""
    attributes = span.attributes
    operation = attributes.get("gen_ai.operation.name")
    if isinstance(operation, str):
        return operation in _OPERATIONS
    kind = attributes.get("openinference.span.kind")
    if isinstance(kind, str):
        return kind == "LLM"
    request = attributes.get("llm.request.type")
    if isinstance(request, str):
        return request in ("chat", "completion")
    observation = attributes.get("langfuse.observation.type")
    if isinstance(observation, str):
        return observation == "generation"
    vercel_id = attributes.get("ai.operationId")
    if isinstance(vercel_id, str):
        return vercel_id.startswith(_VERCEL)
    return _is_unnamed_call(attributes)


def _is_unnamed_call(attributes: dict[str, Json]) -> bool:
    """Hand-written spans carry a completion, or messages with a model, and no operation."""
    if "gen_ai.output.messages" in attributes:
        return "gen_ai.request.model" in attributes or "gen_ai.response.model" in attributes
    return any(key.startswith("gen_ai.completion") for key in attributes)


def read(span: SpanRecord, records: Sequence[LogRecord]) -> Call:
    """Read one call. Input and output come from the first source that has them, in the order of the notes."""
    content = _content(span, records)
    outputs = content.outputs or ()
    texts = tuple(text for turn in outputs if (text := turn.text.strip()))
    tools = [part for turn in outputs for part in turn.parts if part.kind == "tool_call"]
    finish = next((turn.finish for turn in outputs if turn.finish is not None), None)
    if finish is None:
        finish = _finish(span.attributes)
    return Call(
        span,
        content,
        texts,
        wants_tools=bool(tools) and not _answers(content, finish),
        tools=dumps([[part.name, part.arguments] for part in tools]) if tools else "",
        finish=finish,
    )


def signature(call: Call) -> tuple[str, str]:
    """What a twin of the call has said as well."""
    return (normalised("\n".join(call.texts)), "" if call.texts else call.tools)


def _content(span: SpanRecord, records: Sequence[LogRecord]) -> Content:
    found = Content()
    attributes = span.attributes
    for source in (semconv, indexed, openinference, langfuse, vercel):
        content = source.read(attributes)
        if content is not None:
            found = _merged(found, content)
            if found.inputs and found.outputs:
                return found
    if records or span.events:
        content = logs.read(records, span.events)
        if content is not None:
            found = _merged(found, content)
    return found


def _merged(first: Content, second: Content) -> Content:
    """Each side from the first source that has it; a cut side gives way to a whole one."""
    take_input = not first.inputs and second.inputs is not None
    take_output = not first.outputs and second.outputs is not None
    return Content(
        second.inputs if take_input else first.inputs,
        second.outputs if take_output else first.outputs,
        second.input_intact if take_input else first.input_intact,
        second.output_intact if take_output else first.output_intact,
    )


def _finish(attributes: dict[str, Json]) -> str | None:
    value = attributes.get("gen_ai.response.finish_reasons")
    if is_list(value) and value:
        return as_text(value[0])
    if isinstance(value, str):
        return value.strip('[]"')
    value = attributes.get("anthropic.message.stop_reason", attributes.get("llm.finish_reason"))
    return value if isinstance(value, str) else None


def _answers(content: Content, finish: str | None) -> bool:
    """A tool call that the provider ran itself is followed by text; else the finish reason says it."""
    if finish is not None:
        if "tool" in finish or "function" in finish:
            return False
        if finish in ("stop", "end_turn", "STOP"):
            return any(turn.text.strip() for turn in content.outputs or ())
    for turn in content.outputs or ():
        kinds = [part.kind for part in turn.parts if part.kind != "reasoning"]
        if kinds and kinds[-1] == "text":
            return True
    return False
