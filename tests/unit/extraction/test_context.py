"""Documents against prompts: what counts as seen, what as retrieved only, and what names the source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from aftercheck_schemas import Chunk, SpanEvent, SpanRecord
from aftercheck_worker.stages.assembly import assemble
from aftercheck_worker.stages.extraction import extract
from aftercheck_worker.stages.extraction.documents import documents_in

if TYPE_CHECKING:
    from aftercheck_schemas import Interaction, Json

TRACE = "ab" * 16
LONG = " ".join(f"Sentence number {number} speaks of the matter at hand." for number in range(20))


def answer(prompt: str, *others: SpanRecord, system: str = "", **more: Json) -> Interaction:
    turns = [{"role": "system", "content": system}] if system else []
    attributes: dict[str, Json] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([*turns, {"role": "user", "content": prompt}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "content": "Yes."}]),
    }
    call = SpanRecord(trace_id=TRACE, span_id="f" * 16, start=100, end=200, attributes=attributes | more)
    (one,) = extract(assemble(TRACE, "app", [Chunk(spans=(call, *others))]))
    return one


def retriever(output: Json, number: int = 1) -> SpanRecord:
    attributes: dict[str, Json] = {"langfuse.observation.type": "retriever", "langfuse.observation.output": output}
    return SpanRecord(trace_id=TRACE, span_id=f"{number:016x}", start=number, end=number + 1, attributes=attributes)


def texts(one: Interaction) -> list[str]:
    return [passage.text for passage in one.passages]


@pytest.mark.req("R8")
def test_document_in_the_prompt_is_evidence_and_another_is_not() -> None:
    one = answer("Given: Cats\n  purr loudly. Do they?", retriever(json.dumps(["Cats purr loudly.", "Dogs bark."])))
    assert texts(one) == ["Cats purr loudly."]
    assert [passage.text for passage in one.retrieved] == ["Dogs bark."]
    assert (one.context_source, one.not_assessable) == ("retrieval_in_prompt", None)


def test_document_is_found_behind_json_escapes() -> None:
    text = 'Kot "Mru\u010dek" śpi.\nZawsze.'
    one = answer(f"Dane: {json.dumps([text])}. Czy śpi?", retriever(json.dumps([text])))
    assert texts(one) == [text]


@pytest.mark.req("R41")
def test_head_of_a_long_document_is_what_the_model_saw() -> None:
    one = answer(f"Read: {LONG[:300]} ... Is it so?", retriever(json.dumps([LONG])))
    (passage,) = one.passages
    assert LONG.startswith(passage.text)
    assert 290 <= len(passage.text) <= 300
    assert passage.elided


def test_window_of_a_document_is_what_the_model_saw() -> None:
    middle = "Sentence number 7 speaks of the matter at hand."
    one = answer(f"Read: {middle} Is it so?", retriever(json.dumps([LONG])))
    assert texts(one) == [middle]
    assert one.passages[0].elided


def test_documents_that_stand_nowhere_belong_to_something_else() -> None:
    one = answer("How are you?", retriever(json.dumps(["Dogs bark."])))
    assert one.passages == ()
    assert (one.context_source, one.not_assessable) == ("retrieval_only", "no_evidence_expected")
    assert [passage.text for passage in one.retrieved] == ["Dogs bark."]


@pytest.mark.req("R28")
@pytest.mark.parametrize("output", ["[]", [], '{"documents": []}'])
def test_empty_retrieval_is_judged(output: Json) -> None:
    one = answer("What do dogs do?", retriever(output))
    assert one.passages == ()
    assert one.not_assessable is None


@pytest.mark.req("R28")
def test_empty_place_for_context_is_judged() -> None:
    one = answer("Context:\n\nQuestion: What do dogs do?")
    assert (one.passages, one.not_assessable, one.context_source) == ((), None, "prompt_block")


def test_plain_chat_expects_no_evidence() -> None:
    assert answer("What do dogs do?").not_assessable == "no_evidence_expected"


def test_same_document_from_three_records_is_one_passage_and_keeps_its_name() -> None:
    event = SpanEvent(
        name="db.query.result", attributes={"db.query.result.id": "d1", "db.query.result.document": "Dogs bark."}
    )
    store = SpanRecord(trace_id=TRACE, span_id="9" * 16, start=1, end=2, events=(event,))
    one = answer("Dogs bark. Do they?", retriever(json.dumps(["Dogs  bark."])), store)
    assert [(passage.source_id, passage.text) for passage in one.passages] == [("d1", "Dogs  bark.")]


def test_text_of_a_block_beyond_the_documents_is_evidence_too() -> None:
    prompt = "Context:\nsource: a.md\n\nDogs bark.\n\nThe office opens at nine.\n\nQuestion: When?"
    one = answer(prompt, retriever(json.dumps(["Dogs bark."])))
    assert texts(one) == ["Dogs bark.", "The office opens at nine."]
    assert one.context_source == "retrieval_in_prompt"


def test_prompt_variable_is_evidence_and_names_the_question() -> None:
    one = answer(
        "Long template with Dogs bark. inside and What do dogs do? too",
        **{"gen_ai.prompt.variable.context": "Dogs bark.", "gen_ai.prompt.variable.question": "What do dogs do?"},
    )
    assert (texts(one), one.question, one.context_source) == (["Dogs bark."], "What do dogs do?", "prompt_variable")


@pytest.mark.parametrize("mime", ["text/plain", "text/markdown"])
def test_text_blob_is_a_document_and_a_pdf_is_not_readable(mime: str) -> None:
    def given(kind: str) -> str:
        blob = {"type": "blob", "mime_type": kind, "modality": "document", "content": "RG9ncyBiYXJrLg=="}
        return json.dumps([{"role": "user", "parts": [blob, {"type": "text", "content": "Do they?"}]}])

    one = answer("", **{"gen_ai.input.messages": given(mime)})
    assert (texts(one), one.context_source, one.question) == (["Dogs bark."], "document_parts", "Do they?")
    assert not one.passages[0].elided
    assert answer("", **{"gen_ai.input.messages": given("application/pdf")}).not_assessable == "input_missing"


def test_what_stands_beside_an_image_may_stand_in_the_image() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": "x"}},
        {"type": "text", "text": "Context: A.\n\nQuestion: B?"},
    ]
    one = answer("", **{"gen_ai.input.messages": json.dumps([{"role": "user", "content": parts}])})
    assert [passage.elided for passage in one.passages] == [True]


@pytest.mark.req("R15")
def test_tool_that_ran_before_the_answer_is_evidence_although_no_message_holds_it() -> None:
    def tool(end: int) -> SpanRecord:
        attributes: dict[str, Json] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "refund",
            "gen_ai.tool.call.result": "Refund 9 created.",
        }
        return SpanRecord(trace_id=TRACE, span_id="8" * 16, start=1, end=end, attributes=attributes)

    one = answer("Did you do it?", tool(90))
    assert [(passage.kind, passage.name, passage.at) for passage in one.passages] == [("tool_result", "refund", 90)]
    assert answer("Did you do it?", tool(250)).passages == ()


def test_text_that_is_recorded_and_retrieved_is_one_passage() -> None:
    note = json.dumps([{"source_id": "p", "text": "Dogs bark.", "trust": 0.5}])
    one = answer("Dogs bark. Do they?", retriever(json.dumps(["Dogs bark."])), **{"aftercheck.context": note})
    assert [(passage.source_id, passage.trust) for passage in one.passages] == [("p", 0.5)]
    assert one.context_source == "recorded"


def test_document_that_only_the_assistant_quoted_was_not_seen() -> None:
    turns = [("user", "Hi"), ("assistant", "Dogs bark."), ("user", "Really?")]
    asked = json.dumps([{"role": role, "content": text} for role, text in turns])
    one = answer("", retriever(json.dumps(["Dogs bark."])), **{"gen_ai.input.messages": asked})
    assert [(passage.kind, passage.text) for passage in one.passages] == [("user_input", "Hi")]
    assert one.context_source == "retrieval_only"


def test_tool_result_counts_as_the_prompt_shows_it() -> None:
    parts = [{"type": "tool_call_response", "id": "c1", "response": "Dogs bark."}]
    asked = json.dumps([{"role": "user", "content": "Do they?"}, {"role": "tool", "parts": parts}])
    span = SpanRecord(
        trace_id=TRACE,
        span_id="8" * 16,
        start=1,
        end=9,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.result": "Dogs bark. And much that the app cut off.",
        },
    )
    assert texts(answer("", span, **{"gen_ai.input.messages": asked})) == ["Dogs bark."]


@pytest.mark.req("R41")
def test_documents_of_a_cut_attribute_are_read_and_elided() -> None:
    whole = json.dumps(["Dogs bark.", "Cats purr loudly all night."])
    one = answer("Dogs bark. Cats purr loudly all night. Do they?", retriever(whole[:-12]))
    assert [(passage.text, passage.elided) for passage in one.passages] == [
        ("Dogs bark.", True),
        ("Cats purr loudly ", True),
    ]
    cut = answer("Q?", **{"aftercheck.context": '[{"source_id": "p", "text": "Dogs bark, and'})
    assert [(passage.text, passage.elided) for passage in cut.passages] == [("Dogs bark, and", True)]


NODE = json.dumps({"node": {"id_": "n1", "metadata": {"source": "a.md"}, "text": "Dogs bark."}, "score": 0.5})


@pytest.mark.parametrize(
    ("value", "source_id"),
    [
        (json.dumps([NODE]), "n1"),
        ([{"page_content": "Dogs bark.", "metadata": {"source": "a.md"}}], "a.md"),
        ({"documents": [{"id": "d", "content": "Dogs bark.", "metadata": '{"source": "a.md"}'}]}, "d"),
        ([{"lc": 1, "kwargs": {"page_content": "Dogs bark.", "id": "k"}}], "k"),
        ("Dogs bark.", ""),
        ([{"id": "d", "score": 0.5, "text": "Dogs bark."}], "d"),
    ],
)
def test_documents_of_any_shape(value: Json, source_id: str) -> None:
    (found,) = documents_in(value)
    assert (found.text, found.source_id) == ("Dogs bark.", source_id)


@pytest.mark.parametrize(
    "value", [["<NodeWithScore(node=TextNode(id_=n2), score=0.3)>"], [{"id": "d", "score": 1}], None]
)
def test_ids_and_object_names_are_no_documents(value: Json) -> None:
    assert documents_in(value) == []
