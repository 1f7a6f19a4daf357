"""Which calls of a trace answered the user, and what the others were."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from aftercheck_schemas import Chunk, LogRecord, SpanRecord
from aftercheck_worker.stages.assembly import assemble
from aftercheck_worker.stages.extraction import extract

if TYPE_CHECKING:
    from aftercheck_schemas import Interaction, Json

TRACE = "ab" * 16
ROOT = "f" * 16
Message = tuple[str, str]


def messages(*turns: Message) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in turns])


def chat(number: int, asked: list[Message], said: str, parent: str | None = None, **more: Json) -> SpanRecord:
    attributes: dict[str, Json] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages(*asked),
        "gen_ai.output.messages": messages(("assistant", said)),
    }
    return span(number, attributes | more, parent)


def span(number: int, attributes: dict[str, Json], parent: str | None = None, **more: object) -> SpanRecord:
    defaults: dict[str, object] = {"start": number * 10, "end": number * 10 + 9, "scope": "a"}
    return SpanRecord(
        trace_id=TRACE,
        span_id=f"{number:016x}",
        parent_id=parent,
        attributes=attributes,
        **(defaults | more),  # type: ignore[arg-type]
    )


def root(said: str | None, asked: str = "Q?") -> SpanRecord:
    attributes: dict[str, Json] = {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.input": json.dumps({"args": [asked], "kwargs": {}}),
    }
    if said is not None:
        attributes["traceloop.entity.output"] = json.dumps(said)
    return SpanRecord(trace_id=TRACE, span_id=ROOT, start=1, end=9_000, attributes=attributes)


def read(*spans: SpanRecord, logs: tuple[LogRecord, ...] = ()) -> list[Interaction]:
    return list(extract(assemble(TRACE, "app", [Chunk(spans=spans, logs=logs)])))


@pytest.mark.req("O-21")
def test_text_that_a_later_prompt_quotes_is_a_step() -> None:
    rewritten = "refund policy for enterprise customers"
    first = chat(1, [("user", "And for enterprises?")], rewritten)
    second = chat(2, [("user", f"Answer the query: {rewritten}")], "30 days.")
    step, answer = read(first, second)
    assert step.not_assessable == "not_an_answer"
    assert answer.not_assessable != "not_an_answer"
    assert (step.call_index, answer.call_index) == (1, 2)


def test_short_text_is_not_a_step_because_a_prompt_holds_it_by_chance() -> None:
    first, _ = read(chat(1, [("user", "Ready?")], "yes"), chat(2, [("user", "Say yes or no.")], "no"))
    assert first.not_assessable == "no_evidence_expected"


@pytest.mark.req("O-21")
def test_turns_of_a_chat_loop_are_answers_of_their_own() -> None:
    one = [("system", "S"), ("user", "Context:\nA is 1.\n\nQuestion: What is A?")]
    two = [
        *one,
        ("assistant", "A is one, as you can read above."),
        ("user", "Context:\nB is 2.\n\nQuestion: What is B?"),
    ]
    first, second = read(
        root("B is two, says the context."),
        chat(1, one, "A is one, as you can read above.", ROOT),
        chat(2, two, "B is two, says the context.", ROOT),
    )
    assert (first.not_assessable, second.not_assessable) == (None, None)
    assert (first.turn, second.turn) == (1, 2)
    assert (first.question, second.question) == ("What is A?", "What is B?")
    assert [message.text for message in second.history] == ["What is A?", "A is one, as you can read above."]
    # The model's own words prove nothing; what the user said is a statement of the user.
    assert {passage.kind: passage.text for passage in second.passages} == {
        "context": "B is 2.",
        "user_input": "What is A?",
    }
    assert "A is 1." in [passage.text for passage in second.passages]


def test_call_whose_text_the_root_did_not_return_is_a_step() -> None:
    title = chat(1, [("user", "Name this chat")], "A chat about refunds", ROOT)
    answer = chat(2, [("user", "Q?")], "Thirty days it is.", ROOT)
    assert [one.not_assessable for one in read(root("Thirty days it is."), title, answer)] == [
        "not_an_answer",
        "no_evidence_expected",
    ]


def test_answer_that_another_model_checked_is_still_the_answer() -> None:
    answer = chat(1, [("user", "Q?")], "Thirty days it is, for all.", ROOT)
    guard = chat(2, [("user", "Is this polite? Thirty days it is, for all.")], "polite", ROOT)
    assert [one.not_assessable for one in read(root("Thirty days it is, for all."), answer, guard)] == [
        "no_evidence_expected",
        "not_an_answer",
    ]


def test_call_stays_an_answer_when_the_root_returned_something_else_altogether() -> None:
    one, two = read(
        root("done"), chat(1, [("user", "a?")], "first text", ROOT), chat(2, [("user", "b?")], "second", ROOT)
    )
    assert one.not_assessable == two.not_assessable == "no_evidence_expected"


@pytest.mark.req("O-18")
def test_nested_spans_of_one_call_are_one_answer() -> None:
    outer = span(
        1,
        {"openinference.span.kind": "LLM", "input.value": "Q?", "output.value": "Yes.", "llm.token_count.prompt": 7},
        end=99,
    )
    inner = chat(2, [("system", "S"), ("user", "Q?")], "Yes.", f"{1:016x}")
    (one,) = read(outer, inner)
    assert one.span_id == inner.span_id
    assert one.context_tokens == 7


def test_same_text_twice_in_turn_is_two_answers() -> None:
    assert len(read(chat(1, [("user", "a?")], "I do not know."), chat(2, [("user", "b?")], "I do not know."))) == 2


def test_parallel_calls_of_one_instrumentation_are_two_answers() -> None:
    first = chat(1, [("user", "a?")], "Same.", **{"gen_ai.response.id": "fake"})
    second = chat(1, [("user", "a?")], "Same.", **{"gen_ai.response.id": "fake"})
    both = read(first, msgspec.structs.replace(second, span_id="9" * 16))
    assert len(both) == 2


def test_native_twin_without_content_beside_the_call_is_dropped() -> None:
    mine = chat(1, [("user", "a?")], "Yes.", ROOT, **{"gen_ai.response.id": "msg_1"})
    native = span(
        1,
        {"gen_ai.operation.name": "chat", "gen_ai.response.id": "msg_1", "gen_ai.usage.input_tokens": 5},
        ROOT,
        scope="com.anthropic.sdk.python",
    )
    native = msgspec.structs.replace(native, span_id="9" * 16)
    (one,) = read(root("Yes."), mine, native)
    assert one.answer == "Yes."
    assert one.context_tokens == 5


def test_embeddings_and_retrievers_yield_nothing() -> None:
    assert (
        read(span(1, {"gen_ai.operation.name": "embeddings", "gen_ai.input.messages": messages(("user", "x"))})) == []
    )
    assert read(span(1, {"openinference.span.kind": "RETRIEVER", "output.value": "[]"})) == []


@pytest.mark.req("O-22")
def test_root_is_the_last_resort_and_its_prompt_is_unknown() -> None:
    (one,) = read(root("Thirty days."))
    assert (one.question, one.answer, one.not_assessable) == ("Q?", "Thirty days.", "input_missing")


def test_root_fills_a_call_that_recorded_nothing() -> None:
    native = span(1, {"gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-4"}, ROOT)
    (one,) = read(root("Thirty days."), native)
    assert (one.span_id, one.answer, one.model) == (native.span_id, "Thirty days.", "claude-4")
    assert one.not_assessable == "input_missing"


@pytest.mark.req("R8")
def test_recorded_context_makes_a_prompt_unnecessary() -> None:
    context = json.dumps([{"source_id": "p", "text": "30 days.", "kind": "doc", "trust": 2}])
    note = span(1, {"aftercheck.context": context}, ROOT)
    (one,) = read(root("Thirty days."), note)
    assert one.not_assessable is None
    assert one.context_source == "recorded"
    assert (one.passages[0].kind, one.passages[0].trust) == ("context", 1.0)


@pytest.mark.req("O-27")
@pytest.mark.parametrize(("message", "reason"), [("boom", "error_span"), ("Abandoned stream", "abandoned_stream")])
def test_failed_call_says_why(message: str, reason: str) -> None:
    failed = span(
        1,
        {"gen_ai.operation.name": "chat", "gen_ai.output.messages": messages(("assistant", "par"))},
        status="error",
        status_message=message,
    )
    assert [one.not_assessable for one in read(failed)] == [reason]


@pytest.mark.req("O-24")
def test_stream_without_a_finish_reason_is_abandoned() -> None:
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Ent"}], "finish_reason": ""}])
    for streaming, reason in ((True, "abandoned_stream"), (False, "no_evidence_expected")):
        one = chat(
            1, [("user", "a?")], "", None, **{"gen_ai.output.messages": said, "gen_ai.is_streaming": streaming}
        )
        assert [found.not_assessable for found in read(one)] == [reason]


@pytest.mark.req("R41")
def test_cut_json_is_marked_and_never_judged() -> None:
    whole = chat(1, [("user", "Context:\nA.\n\nQuestion: B?")], "Yes, it is so.")
    for key, reason in (("gen_ai.input.messages", "invalid_json"), ("gen_ai.output.messages", "answer_truncated")):
        text = whole.attributes[key]
        assert isinstance(text, str)
        (one,) = read(span(1, {**whole.attributes, key: text[: len(text) - 12]}))
        assert one.not_assessable == reason
        assert one.truncated
    assert read(whole)[0].not_assessable is None


def test_answer_that_we_cut_ourselves_is_not_judged() -> None:
    whole = chat(1, [("user", "Context:\nA.\n\nQuestion: B?")], "Yes")
    cut = span(1, whole.attributes, truncated=("gen_ai.output.messages",))
    assert read(cut)[0].not_assessable == "answer_truncated"
    given = read(span(1, whole.attributes, truncated=("gen_ai.input.messages",)))[0]
    assert given.not_assessable is None
    assert given.truncated
    assert all(passage.elided for passage in given.passages)


def test_content_off_is_no_content_and_missing_prompt_is_input_missing() -> None:
    off = span(1, {"gen_ai.operation.name": "chat"})
    lost = span(1, {"gen_ai.operation.name": "chat", "gen_ai.output.messages": messages(("assistant", "Yes."))})
    silent = span(1, {"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages(("user", "a?"))})
    assert [read(one)[0].not_assessable for one in (off, lost, silent)] == [
        "no_content",
        "input_missing",
        "no_answer_text",
    ]


def test_structured_logs_stand_in_for_missing_attributes() -> None:
    record = LogRecord(
        trace_id=TRACE,
        span_id=f"{1:016x}",
        event_name="gen_ai.client.inference.operation.details",
        attributes={
            "gen_ai.input.messages": [
                {"role": "user", "parts": [{"type": "text", "content": "Context: A.\n\nQuestion: B?"}]}
            ],
            "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "C."}]}],
        },
    )
    (one,) = read(span(1, {"gen_ai.operation.name": "chat"}), logs=(record,))
    assert (one.question, one.answer, one.not_assessable) == ("B?", "C.", None)


@pytest.mark.req("R2")
def test_prompt_version_is_recorded_or_a_hash_that_retrieved_text_does_not_change() -> None:
    def version(system: str, **more: Json) -> str:
        return read(chat(1, [("system", system), ("user", "B?")], "C.", None, **more))[0].versions.prompt

    plain = version("Answer politely.")
    assert plain == "h:835a2b05d5ea"
    first = version("Answer from the context.\n<context>\nA is 1.\n</context>")
    second = version("Answer from the context.\n<context>\nB is 2.\n</context>")
    assert first == second != plain
    assert version("Answer politely.", **{"aftercheck.version.prompt": "v3"}) == "v3"
    assert version("x", **{"traceloop.prompt.key": "qa", "traceloop.prompt.version": 4}) == "qa@4"


def test_rendered_text_is_kept_when_it_differs() -> None:
    shown = span(2, {"aftercheck.output": "<b>Yes</b>"}, ROOT)
    assert read(root("Yes"), chat(1, [("user", "a?")], "Yes", ROOT), shown)[0].rendered == "<b>Yes</b>"
    same = span(2, {"aftercheck.output": "Yes"}, ROOT)
    assert read(root("Yes"), chat(1, [("user", "a?")], "Yes", ROOT), same)[0].rendered is None


@pytest.mark.req("R5")
def test_questions_of_one_batch_keep_their_evidence_apart() -> None:
    def note(number: int, text: str, parent: str) -> SpanRecord:
        return span(number, {"aftercheck.context": json.dumps([{"source_id": f"s{number}", "text": text}])}, parent)

    def tool(number: int, text: str, parent: str) -> SpanRecord:
        attributes: dict[str, Json] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": text}
        return span(number, attributes, parent)

    one, two = f"{1:016x}", f"{2:016x}"
    tasks = [span(number, {"traceloop.span.kind": "task"}, ROOT, start=5, end=99) for number in (1, 2)]
    shared = span(3, {"aftercheck.context": json.dumps(["Shared by all."])}, ROOT)
    first, second = read(
        root(None),
        *tasks,
        shared,
        note(4, "A is 1.", one),
        tool(5, "A was seen.", one),
        chat(6, [("user", "What is A?")], "One.", one),
        note(7, "B is 2.", two),
        tool(8, "B was seen.", two),
        chat(9, [("user", "What is B?")], "Two.", two),
    )
    assert [passage.text for passage in first.passages] == ["Shared by all.", "A is 1.", "A was seen."]
    assert [passage.text for passage in second.passages] == ["Shared by all.", "B is 2.", "B was seen."]


def test_tool_under_the_step_that_asked_for_it_serves_the_answer() -> None:
    asked = json.dumps(
        [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "t", "arguments": {}}]}]
    )
    step = span(1, {}, ROOT, end=29)
    call = chat(1, [("user", "Q?")], "", f"{1:016x}", **{"gen_ai.output.messages": asked})
    call = msgspec.structs.replace(call, span_id="5" * 16)
    tool = span(2, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": "It is 30."}, f"{1:016x}")
    found = read(root(None), step, call, tool, chat(3, [("user", "Q?")], "Thirty.", ROOT))
    assert [one.not_assessable for one in found] == ["tool_calls_only", None]
    assert [passage.text for passage in found[1].passages] == ["It is 30."]


@pytest.mark.parametrize(("finish", "reason"), [("tool_use", "tool_calls_only"), ("stop", None), (None, None)])
def test_finish_reason_tells_a_step_from_an_answer_with_tools_of_the_provider(
    finish: str | None, reason: str | None
) -> None:
    parts = [{"type": "tool_call", "id": "c", "name": "web"}, {"type": "text", "content": "Thirty."}]
    said = json.dumps([{"role": "assistant", "parts": parts, "finish_reason": finish}])
    asked: list[Message] = [("user", "Context: A.\n\nQuestion: B?")]
    assert [one.not_assessable for one in read(chat(1, asked, "", None, **{"gen_ai.output.messages": said}))] == [
        reason
    ]


def test_indexed_messages_are_read_in_the_order_of_their_index() -> None:
    attributes: dict[str, Json] = {
        "llm.request.type": "chat",
        "gen_ai.prompt.10.content": "third?",
        "gen_ai.prompt.2.content": "second",
        "gen_ai.prompt.2.role": "assistant",
        "gen_ai.prompt.0.content": "first",
        "gen_ai.completion.0.content": "Yes.",
    }
    (one,) = read(span(1, attributes))
    assert one.question == "third?"
    assert [message.text for message in one.history] == ["first", "second"]


def test_turn_that_the_app_recorded_wins_over_the_count() -> None:
    (one,) = read(chat(1, [("user", "a?")], "Yes.", None, **{"aftercheck.session.turn": 4}))
    assert one.turn == 4


def test_context_that_we_cut_is_elided() -> None:
    note = span(1, {"aftercheck.context": '["A."]'}, ROOT, truncated=("aftercheck.context",))
    assert [
        passage.elided for passage in read(root(None), note, chat(2, [("user", "a?")], "Yes.", ROOT))[0].passages
    ] == [True]
