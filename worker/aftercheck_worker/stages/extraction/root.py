"""What the app's own spans say went in and came out: the root's input and output, whatever framework wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aftercheck_worker.stages.extraction.decoding import decode, loads, unquoted
from aftercheck_worker.stages.extraction.messages import turns_of
from aftercheck_worker.stages.extraction.shape import is_dict, is_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aftercheck_schemas import Json, SpanRecord

INPUT_KEYS: Final = (
    "traceloop.entity.input",
    "input.value",
    "langfuse.observation.input",
    "langfuse.trace.input",
    "gen_ai.input.messages",
    "gen_ai.task.input",
    "ai.prompt",
)
OUTPUT_KEYS: Final = (
    "traceloop.entity.output",
    "output.value",
    "langfuse.observation.output",
    "langfuse.trace.output",
    "gen_ai.output.messages",
    "gen_ai.task.output",
    "final_result",
    "ai.response.text",
)
_QUESTION_KEYS: Final = (
    "question",
    "query",
    "user_query",
    "user_input",
    "input",
    "inputs",
    "query_str",
    "str_or_query_bundle",
    "query_bundle",
    "message",
    "prompt",
    "messages",
    "text",
    "q",
    "args",
    "kwargs",
    "content",
)
_ANSWER_KEYS: Final = (
    "answer",
    "output",
    "outputs",
    "response",
    "result",
    "final_result",
    "completion",
    "generation",
    "messages",
    "text",
    "content",
)
_MAX_DEPTH: Final = 8


def question_in(spans: Iterable[SpanRecord]) -> str:
    """The first text that the app was asked, over spans from the top down; "" when none says it.

    LangChain streams record an empty input on the root and the real one in the output's `kwargs.inputs`.
    """
    for span in spans:
        attributes = span.attributes
        for key in INPUT_KEYS:
            if key in attributes and (text := question_of(attributes[key])):
                return text
        output = attributes.get("traceloop.entity.output")
        if isinstance(output, str) and '"inputs"' in output:
            value = loads(output)
            kwargs = value.get("kwargs") if is_dict(value) else None
            if is_dict(kwargs) and (text := question_of(kwargs.get("inputs"))):
                return text
    return ""


def answer_in(span: SpanRecord) -> str:
    """The text that the span returned, "" when it returned none."""
    for key in OUTPUT_KEYS:
        if key in span.attributes and (text := answer_of(span.attributes[key])):
            return text
    return ""


def question_of(value: Json, depth: int = 0) -> str:
    """The user's words inside an input of any shape."""
    return _search(decode(unquoted(value)).value, _QUESTION_KEYS, "user", depth)


def answer_of(value: Json, depth: int = 0) -> str:
    """The app's words inside an output of any shape."""
    return _search(decode(unquoted(value)).value, _ANSWER_KEYS, "assistant", depth)


def _search(value: Json, keys: tuple[str, ...], role: str, depth: int) -> str:
    if isinstance(value, str):
        return value.strip()
    if depth > _MAX_DEPTH:
        return ""
    if is_list(value):
        return _in_list(value, keys, role, depth)
    if not is_dict(value):
        return ""
    for key in keys:
        inner = value.get(key)
        if inner is not None and inner != "":
            found = _search(inner if not isinstance(inner, str) else loads(inner), keys, role, depth + 1)
            if found:
                return found
    inner = value.get("kwargs", value.get("data"))
    return _search(inner, keys, role, depth + 1) if is_dict(inner) else ""


def _in_list(value: list[Json], keys: tuple[str, ...], role: str, depth: int) -> str:
    """The last message of the role; in a list of arguments the first text."""
    if any(is_dict(item) and ("role" in item or "lc" in item or "data" in item) for item in value[:3]):
        texts = [turn.text for turn in turns_of(value, "user") if turn.role == role and turn.text.strip()]
        return texts[-1].strip() if texts else ""
    if role == "assistant":
        return ""
    for item in value[:20]:
        if isinstance(item, str) and item.strip():
            return item.strip()
        if is_dict(item) and (found := _search(item, keys, role, depth + 1)):
            return found
    return ""
