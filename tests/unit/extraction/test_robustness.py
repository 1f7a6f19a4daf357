"""Attributes hold anything. Extraction never raises, always says the same, and gives values the store can take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aftercheck_schemas import Chunk, LogRecord, SpanEvent, SpanRecord
from aftercheck_worker.stages.assembly import assemble
from aftercheck_worker.stages.extraction import extract

if TYPE_CHECKING:
    from collections.abc import Callable

    from aftercheck_schemas import Interaction, Json

TRACE = "ab" * 16

scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=30)
words = st.sampled_from(
    [
        "system",
        "user",
        "assistant",
        "tool",
        "text",
        "tool_call",
        "tool_call_response",
        "blob",
        "document",
        "Context:\nA.\n\nQuestion: B?",
        "<context>x</context>",
        "---\nx\n---",
        '{"results": ["a", {"text": "b"}]}',
        '[{"role": "user", "content": "cut off he',
        "[1] see page 4",
        "Zażółć \\u017c gęślą",
    ]
)
keys_inside = st.sampled_from(
    [
        "role",
        "parts",
        "content",
        "type",
        "text",
        "id",
        "name",
        "response",
        "result",
        "arguments",
        "tool_calls",
        "function",
        "messages",
        "kwargs",
        "data",
        "source",
        "documents",
        "node",
        "page_content",
        "metadata",
        "lc",
        "output",
        "outputs",
        "message",
        "choices",
        "finish_reason",
        "args",
        "inputs",
    ]
)
values: st.SearchStrategy[Json] = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys_inside | st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)
encoded = values.map(lambda value: json.dumps(value, default=str))
attribute_names = st.sampled_from(
    [
        "gen_ai.operation.name",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.prompt.0.role",
        "gen_ai.prompt.0.content",
        "gen_ai.prompt.7.tool_calls.0.id",
        "gen_ai.completion.0.content",
        "gen_ai.completion.0.tool_calls",
        "gen_ai.completion.0",
        "gen_ai.prompt",
        "gen_ai.response.finish_reasons",
        "gen_ai.request.model",
        "gen_ai.usage.input_tokens",
        "gen_ai.request.temperature",
        "gen_ai.conversation.id",
        "gen_ai.response.id",
        "openinference.span.kind",
        "llm.input_messages.0.message.role",
        "llm.input_messages.0.message.content",
        "llm.input_messages.0.message.contents.0.message_content",
        "llm.input_messages.0.message.contents.0.message_content.text",
        "llm.output_messages.0.message.content",
        "llm.output_messages.0.message",
        "llm.output_messages.0.message.tool_calls.0",
        "llm.invocation_parameters",
        "llm.prompt_template.variables",
        "input.value",
        "output.value",
        "retrieval.documents.0.document",
        "retrieval.documents.0.document.content",
        "retrieval.documents.0.document.metadata",
        "langfuse.observation.type",
        "langfuse.observation.input",
        "langfuse.observation.output",
        "langfuse.observation.usage_details",
        "ai.operationId",
        "ai.prompt",
        "ai.prompt.messages",
        "ai.response.text",
        "ai.response.toolCalls",
        "ai.toolCall.name",
        "ai.toolCall.result",
        "traceloop.span.kind",
        "traceloop.entity.name",
        "traceloop.entity.input",
        "traceloop.entity.output",
        "gen_ai.tool.call.result",
        "gen_ai.tool.call.arguments",
        "gen_ai.retrieval.documents",
        "gen_ai.prompt.variable.context",
        "gen_ai.prompt.variable.question",
        "aftercheck.context",
        "aftercheck.output",
        "aftercheck.session.turn",
        "aftercheck.session.id",
        "aftercheck.version.prompt",
        "llm.request.type",
    ]
)
kinds = st.sampled_from(
    ["chat", "LLM", "RETRIEVER", "TOOL", "generation", "retriever", "workflow", "task", "execute_tool"]
)
attributes = st.dictionaries(attribute_names, values | encoded | kinds, max_size=9)
ids = st.sampled_from(["1" * 16, "2" * 16, "3" * 16, "4" * 16])
spans = st.builds(
    SpanRecord,
    trace_id=st.just(TRACE),
    span_id=ids,
    parent_id=st.none() | ids,
    name=st.sampled_from(["retrieve", "chat", "x"]),
    scope=st.sampled_from(["a", "b"]),
    start=st.integers(0, 50),
    end=st.integers(0, 50),
    status=st.sampled_from(["unset", "ok", "error"]),
    attributes=attributes,
    events=st.lists(
        st.builds(
            SpanEvent,
            name=st.sampled_from(
                ["db.query.result", "gen_ai.choice", "gen_ai.user.message", "gen_ai.content.prompt"]
            ),
            attributes=st.dictionaries(
                st.sampled_from(["db.query.result.document", "content", "message", "gen_ai.prompt"]),
                values,
                max_size=3,
            ),
        ),
        max_size=2,
    ).map(tuple),
    truncated=st.sampled_from([(), ("gen_ai.output.messages",)]),
)
logs = st.builds(
    LogRecord,
    trace_id=st.just(TRACE),
    span_id=ids,
    event_name=st.sampled_from(
        ["gen_ai.user.message", "gen_ai.choice", "gen_ai.tool.message", "gen_ai.client.inference.operation.details"]
    ),
    attributes=attributes,
    body=values | encoded,
)


def check(found: tuple[Interaction, ...]) -> None:
    for one in found:
        assert isinstance(one.question, str)
        assert one.answer == one.answer.strip()
        assert 0 <= one.context_confidence <= 1
        assert one.context_tokens >= 0
        assert one.turn >= 0
        assert len({passage.source_id for passage in one.passages}) == len(one.passages)
        for passage in one.passages:
            assert passage.text.strip()
            assert 0 <= passage.trust <= 1
            assert passage.kind != "prior_assistant"
        if one.not_assessable is None:
            assert one.answer
        assert msgspec.json.decode(msgspec.json.encode(one), type=type(one)) == one


@pytest.mark.req("O-26")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(spans, max_size=5), st.lists(logs, max_size=3))
def test_any_trace_is_read(some: list[SpanRecord], records: list[LogRecord]) -> None:
    trace = assemble(TRACE, "app", [Chunk(spans=tuple(some), logs=tuple(records))])
    found = extract(trace)
    check(found)
    again = assemble(
        TRACE, "app", [*(Chunk(spans=(span,)) for span in reversed(trace.spans)), Chunk(logs=trace.logs)]
    )
    assert extract(again) == found


def chat(messages: str, **more: Json) -> SpanRecord:
    attributes: dict[str, Json] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages,
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]',
    }
    return SpanRecord(trace_id=TRACE, span_id="1" * 16, start=1, end=2, attributes={**attributes, **more})


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param("[" * 100_000, id="deep list"),
        pytest.param('{"a":' * 100_000, id="deep object"),
        pytest.param(json.dumps([{"role": "user", "content": "<doc>" * 100_000}]), id="unclosed tags"),
        pytest.param(json.dumps([{"role": "user", "content": "Context:\n" * 100_000}]), id="labels"),
        pytest.param(json.dumps([{"role": "user", "content": "---\n" * 100_000}]), id="fences"),
        pytest.param(json.dumps([{"role": "user", "content": "Question: a? " * 50_000}]), id="inline labels"),
        pytest.param(json.dumps([{"role": "user", "content": "x" * 2_000_000}]), id="long word"),
        pytest.param(json.dumps([{"role": "system", "content": "a " * 500_000}]), id="long system"),
        pytest.param(json.dumps([{"role": "user", "content": " " * 500_000 + "x"}]), id="spaces"),
        pytest.param(json.dumps([{"role": "user", "content": "\\" * 500_000}]), id="backslashes"),
        pytest.param(json.dumps([{"role": "user", "content": ("a" + " " * 100_000 + "b\n") * 10}]), id="wide lines"),
        pytest.param(json.dumps([{"role": "user", "content": "# a" + " " * 900_000 + "b"}]), id="wide heading"),
        pytest.param(json.dumps([{"role": "user", "content": "." + " " * 900_000 + "b:"}]), id="wide sentence"),
        pytest.param(json.dumps([{"role": "user", "content": "<source></doc>" * 40_000}]), id="crossed tags"),
        pytest.param(json.dumps([{"role": "user", "content": "a"}] * 20_000), id="many turns"),
        pytest.param(r'[{"role": "user", "content": "\ud800 lone"}]', id="lone surrogate"),
        pytest.param('[{"role": "user", "content": NaN}]', id="NaN"),
    ],
)
@pytest.mark.timeout(20)
def test_hostile_prompt_is_read(messages: str) -> None:
    span = chat(messages, **{"aftercheck.context": messages, "gen_ai.prompt.variable.context": messages})
    check(extract(assemble(TRACE, "app", [Chunk(spans=(span,))])))


def test_many_calls_of_one_trace_are_read(call_of: Callable[[int], SpanRecord]) -> None:
    found = extract(assemble(TRACE, "app", [Chunk(spans=tuple(call_of(number) for number in range(300)))]))
    assert len(found) == 300
    assert [one.call_index for one in found] == list(range(1, 301))


def test_long_chat_in_one_trace_is_read() -> None:
    turns: list[dict[str, str]] = []
    spans: list[SpanRecord] = []
    for number in range(150):
        turns.append({"role": "user", "content": f"Question number {number}?"})
        said = f"This is the answer to question number {number}."
        attributes: dict[str, Json] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": json.dumps(turns),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": said}]),
        }
        span_id, start = f"{number:016x}", number * 10 + 1
        spans.append(SpanRecord(trace_id=TRACE, span_id=span_id, start=start, end=start + 5, attributes=attributes))
        turns.append({"role": "assistant", "content": said})
    found = extract(assemble(TRACE, "app", [Chunk(spans=tuple(spans))]))
    assert [one.turn for one in found] == list(range(1, 151))
    assert {one.not_assessable for one in found} == {"no_evidence_expected"}


@pytest.fixture
def call_of() -> Callable[[int], SpanRecord]:
    def make(number: int) -> SpanRecord:
        text = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": f"Answer number {number}."}]}])
        asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"Question {number}?"}]}])
        return SpanRecord(
            trace_id=TRACE,
            span_id=f"{number:016x}",
            start=number * 10 + 1,
            end=number * 10 + 5,
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.input.messages": asked,
                "gen_ai.output.messages": text,
            },
        )

    return make
