from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from aftercheck_schemas import SpanRecord
from aftercheck_worker.stages.extraction.messages import turns_of
from aftercheck_worker.stages.extraction.tool_results import in_prompt, output_of, tool_spans

if TYPE_CHECKING:
    from aftercheck_schemas import Json

MESSAGE = {"lc": 1, "type": "constructor", "id": ["ToolMessage"], "kwargs": {"content": "A.", "type": "tool"}}


@pytest.mark.req("R8")
@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("A.", ("A.",)),
        ('["A.", "B."]', ("A.", "B.")),
        (["A.", "B."], ("A.", "B.")),
        ('{"results": ["A.", "B."]}', ("A.", "B.")),
        ({"results": ["A."], "total": 1}, ("A.", '{"total":1}')),
        ([{"type": "text", "text": '["A.", "B."]'}], ("A.", "B.")),
        ([{"title": "T", "text": "A.", "url": "u"}], ("T\nA.",)),
        ({"order": 17, "city": "Gda\u0144sk"}, ('{"order":17,"city":"Gdańsk"}',)),
        ('{"order": 17, "city": "Gda\\u0144sk"}', ('{"order":17,"city":"Gdańsk"}',)),
        ([{"order": 17}, {"order": 18}], ('[{"order":17},{"order":18}]',)),
        ({"result": "A."}, ("A.",)),
        (json.dumps({"output": MESSAGE, "kwargs": {}}), ("A.",)),
        ({"type": "tool", "data": {"content": "A.", "tool_call_id": "c"}}, ("A.",)),
        (17, ("17",)),
        (None, ()),
        ("", ()),
        ([], ()),
    ],
)
def test_result_of_any_shape_is_text(content: Json, texts: tuple[str, ...]) -> None:
    output = output_of(content)
    assert output.texts == texts
    assert output.ok


@pytest.mark.req("R15")
@pytest.mark.parametrize(
    "content",
    [
        "Error: service is down",
        "error invoking tool 'x'",
        "ValueError: bad order",
        "Traceback (most recent call last):\n ...",
        '{"error": "not found"}',
        {"isError": True, "content": "x"},
        {"success": False},
        {**MESSAGE, "kwargs": {"content": "x", "status": "error", "type": "tool"}},
    ],
)
def test_failed_tool_is_no_evidence(content: Json) -> None:
    assert not output_of(content).ok


@pytest.mark.parametrize(
    "content", ["Errors are rare here.", {"status": "failed", "order": 17}, {"error": None, "a": 1}]
)
def test_result_that_speaks_of_failure_is_none(content: Json) -> None:
    assert output_of(content).ok


def prompt(result: dict[str, Json], role: str = "tool") -> list[dict[str, Json]]:
    call: Json = {"type": "tool_call", "id": "c1", "name": "track", "arguments": {"order": 17}}
    return [{"role": "assistant", "parts": [call]}, {"role": role, "parts": [result]}]


@pytest.mark.parametrize(
    ("result", "role"),
    [
        ({"type": "tool_call_response", "id": "c1", "response": "Lviv."}, "tool"),
        ({"type": "tool_call_response", "id": "c1", "result": "Lviv."}, "user"),
        ({"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "Lviv."}]}, "user"),
        ({"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "Lviv."}}, "tool"),
        ({"type": "function_call_output", "call_id": "c1", "output": "Lviv."}, "user"),
    ],
)
def test_result_in_the_prompt_takes_name_and_arguments_from_its_call(result: dict[str, Json], role: str) -> None:
    (passage,) = in_prompt(turns_of(prompt(result, role), "user"), ())
    assert (passage.source_id, passage.text, passage.kind, passage.ok) == ("c1", "Lviv.", "tool_result", True)
    assert (passage.name, json.loads(passage.arguments)) == ("track", {"order": 17})


def test_openai_messages_are_read_as_they_are_sent() -> None:
    turns = turns_of(
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c1", "function": {"name": "t", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "Lviv."},
        ],
        "user",
    )
    (passage,) = in_prompt(turns, ())
    assert (passage.source_id, passage.name, passage.arguments, passage.text) == ("c1", "t", "{}", "Lviv.")


def test_failed_span_makes_its_result_fail_and_gives_the_time() -> None:
    span = SpanRecord(
        trace_id="ab" * 16,
        span_id="1" * 16,
        status="error",
        start=3,
        end=9,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "track",
            "gen_ai.tool.call.id": "c1",
        },
    )
    (tool,) = tool_spans([span])
    (passage,) = in_prompt(
        turns_of(prompt({"type": "tool_call_response", "id": "c1", "response": "see log"}), "user"), [tool]
    )
    assert (passage.ok, passage.at) == (False, 9)


def test_cut_result_is_elided() -> None:
    result: dict[str, Json] = {"type": "tool_call_response", "id": "c1", "response": '{"order": 17, "city": "Lv'}
    (passage,) = in_prompt(turns_of(prompt(result), "user"), ())
    assert passage.elided
    assert passage.ok


def test_error_flag_of_anthropic_is_heeded() -> None:
    result: dict[str, Json] = {"type": "tool_result", "tool_use_id": "c1", "content": "x", "is_error": True}
    (passage,) = in_prompt(turns_of(prompt(result, "user"), "user"), ())
    assert not passage.ok


def test_decorated_tool_that_returns_text_is_read_without_quotes() -> None:
    span = SpanRecord(
        trace_id="ab" * 16,
        span_id="1" * 16,
        attributes={
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "kb",
            "traceloop.entity.input": '{"args": ["q"], "kwargs": {}}',
            "traceloop.entity.output": '"Za\\u017c\\u00f3\\u0142\\u0107."',
        },
    )
    (tool,) = tool_spans([span])
    assert (tool.name, tool.arguments, tool.output.texts) == ("kb", '["q"]', ("Zażółć.",))
