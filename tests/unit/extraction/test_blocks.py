from __future__ import annotations

import pytest

from aftercheck_worker.stages.extraction.blocks import parse
from aftercheck_worker.stages.extraction.instructions import facts_in


@pytest.mark.req("R8")
@pytest.mark.parametrize(
    ("text", "blocks", "question"),
    [
        ("Context: A.\n\nQuestion: B?", ["A."], "B?"),
        ("CONTEXT:\nA.\n\nQUESTION:\nB?\n\nANSWER:", ["A."], "B?"),
        ("**Context:**\nA.\n\n**Question:** B?", ["A."], "B?"),
        ("Context：A。\n\nQuestion：B？", ["A。"], "B？"),
        ("[Context]: A.\n[Question]: B?", ["A."], "B?"),
        ("Question: B?\n\nContext: A.", ["A."], "B?"),
        ("Use this.\n\nText: A.\n\nQuestion: B?", ["A."], "B?"),
        ("Źródła:\nA.\n\nPytanie użytkownika: B?", ["A."], "B?"),
        ("Документи:\nA.\n\nПитання: B?", ["A."], "B?"),
        ("Документы:\nA.\n\nВопрос: B?", ["A."], "B?"),
        ("Quellen:\nA.\n\nFrage des Nutzers: B?", ["A."], "B?"),
        ("Контекст: A. Запрос: B?", ["A."], "B?"),
        ("Context: A line.\nNotes: more.\n\nQuestion: B?", ["A line.\nNotes: more."], "B?"),
        ("Sources:\nSource 1: A\nSource 2: C\n\nQuestion: B?", ["A", "C"], "B?"),
        ("Context:\nA.\n\nHistory:\nUser: x\nAssistant: y\n\nQuestion: B?", ["A."], "B?"),
        ("<context>A.</context>\nQuestion: B?", ["A."], "B?"),
        ("Context:\nQuestion: of guilt\n\nQuestion: B?", ["Question: of guilt"], "B?"),
        ("<documents><doc id='x'>A.</doc><doc id='y'>C.</doc></documents>", ["A.", "C."], ""),
        ("Documents are below.\n---\nA.\n---\nC.\n---\nQuery: B?\nAnswer: ", ["A.", "C."], "B?"),
        ("Here is the context:\n```text\nA.\n```\nQuestion: B?", ["A."], "B?"),
        ('Use the following text.\n"""\nA.\n"""\nQuestion: B?', ["A."], "B?"),
        ("Context:\n\nQuestion: B?", [], "B?"),
        ("<context></context>\nQuestion: B?", [], "B?"),
    ],
)
def test_template_is_taken_apart(text: str, blocks: list[str], question: str) -> None:
    template = parse(text)
    assert template.found
    assert [block.text for block in template.blocks] == blocks
    assert template.question == question


@pytest.mark.parametrize(
    "text",
    [
        "What is the refund policy?",
        "Compare these:\n---\nA\n---\nB",
        "Data: 5",
        "Why does <doc> not close?",
        "Text me: at noon",
    ],
)
def test_plain_message_has_no_place_for_context(text: str) -> None:
    assert not parse(text).found


def test_citation_numbers_name_the_documents() -> None:
    blocks = parse("Context:\n[1] A is 1.\n[7] B is 2.\n\nQuestion: B?").blocks
    assert [(block.source_id, block.text) for block in blocks] == [("1", "A is 1."), ("7", "B is 2.")]


def test_last_asking_paragraph_is_the_question_when_nothing_labels_it() -> None:
    template = parse("Context:\nA.\n\nC.\n\nWhat is B?")
    assert [block.text for block in template.blocks] == ["A.\n\nC."]
    assert template.rest.strip() == "What is B?"


def test_facts_of_a_system_prompt_are_what_the_instructions_leave() -> None:
    cue = "Answer only from the provided context."
    fact = "Parcels leave the warehouse every Tuesday. Returns take ten days."
    assert facts_in(f"{cue}\n\n{fact}") == fact
    assert facts_in(f"{cue} {fact}") == fact
    assert facts_in(f"Odpowiadaj tylko na podstawie kontekstu.\n\n{fact}") == fact
    assert facts_in(f"Отвечай только по контексту ниже.\n\n{fact}") == fact


def test_instructions_alone_and_personas_are_no_facts() -> None:
    rules = (
        "You are an expert Q&A system that is trusted around the world.\nAlways answer the query using the provided "
        "context information, and not prior knowledge.\nSome rules to follow:\n1. Never directly reference the given "
        "context in your answer.\n2. Avoid statements like 'Based on the context, ...' or anything along those lines."
    )
    assert facts_in(rules) == ""
    assert (
        facts_in("You are Ann. Ann likes cats and tea. Ann lives in Lodz and works in a small shop near the river.")
        == ""
    )
    assert facts_in("Short.") == ""
