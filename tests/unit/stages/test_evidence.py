"""The evidence pool: what counts, what does not, and that blank is not silence."""

from __future__ import annotations

import pytest

from aftercheck_schemas.interaction import Interaction, Message, Passage
from aftercheck_worker.stages.evidence import EvidencePool, pool


def make(*passages: Passage, question: str = "", history: tuple[Message, ...] = ()) -> EvidencePool:
    return pool(
        Interaction(trace_id="t", span_id="s", app="a", question=question, passages=passages, history=history)
    )


@pytest.mark.req("R8")
def test_the_assistants_own_turns_are_no_evidence() -> None:
    found = make(
        Passage(source_id="p", text="The fee is 5.", kind="prior_assistant"),
        history=(
            Message(role="assistant", text="The fee is 5 euros."),
            Message(role="user", text="My order 5521 is broken."),
        ),
    )
    assert [(s.source_id, s.kind) for s in found.sources] == [("history:2", "user_input")]
    assert found.empty
    assert found.available


@pytest.mark.parametrize(
    "text",
    [
        "add_star(id=9) -> error 403",
        "Error: timeout",
        '{"status": "failed"}',
        "Traceback (most recent call last)",
        "code=500",
    ],
)
def test_a_failed_tool_supports_nothing(text: str) -> None:
    found = make(Passage(source_id="t", text=text, kind="tool_result"))
    assert (found.sources, [s.source_id for s in found.failed]) == ((), ["t"])


@pytest.mark.parametrize("text", ["errors: 0", "rows: 0", "render_pdf() -> ok", '{"status": 200}'])
def test_a_working_tool_is_evidence(text: str) -> None:
    assert make(Passage(source_id="t", text=text, kind="tool_result")).sources


def test_a_document_about_errors_is_a_document() -> None:
    assert make(Passage(source_id="d", text="status: failed means that the job stopped.")).sources


def test_blank_context_is_a_capture_fault() -> None:
    found = make(Passage(source_id="d", text="  \n "))
    assert found.missing
    assert not found.available
    assert not make().missing


def test_a_question_supports_nothing_by_what_it_presumes() -> None:
    assert not make(question="Why did the bridge close in 2020?").sources
    assert not make(question="Stage, watch and deposit the file").sources
    assert make(question="My order number is 5521 and it arrived broken.").sources


def test_the_digest_follows_the_text() -> None:
    one, two = make(Passage(source_id="a", text="x y")), make(Passage(source_id="b", text="x y"))
    assert one.digest == two.digest != make(Passage(source_id="a", text="x z")).digest


def test_spans_are_verbatim() -> None:
    (source,) = make(Passage(source_id="a", text="Fee: 5 €.", trust=0.7)).sources
    evidence = source.span(5, 8, 0.9)
    assert (evidence.text, evidence.trust, evidence.source_id) == ("5 €", 0.7, "a")
