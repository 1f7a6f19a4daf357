"""Claims: offsets, types, reason codes, recall on the hand-labelled slice, abstention, hostile input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercheck_schemas.evaluation import Claim
from aftercheck_schemas.interaction import Interaction, Passage
from aftercheck_worker.stages.claims import SKIP_REASONS, abstains, split

SLICE = Path(__file__).parents[2] / "cases" / "extractor_slice.jsonl"
ROWS: list[dict[str, object]] = [json.loads(line) for line in SLICE.read_text(encoding="utf-8").splitlines()]


def claims(answer: str, question: str = "", *passages: Passage) -> tuple[Claim, ...]:
    return split(Interaction(trace_id="t", span_id="s", app="a", question=question, answer=answer, passages=passages))


def checkable(answer: str, question: str = "", *passages: Passage) -> list[str]:
    return [claim.text for claim in claims(answer, question, *passages) if claim.verifiable]


@pytest.mark.req("R18")
def test_recall_on_the_labelled_slice() -> None:
    verifiable = [row for row in ROWS if row["verifiable"]]
    found = [row for row in verifiable if checkable(str(row["text"]))]
    others = [row for row in ROWS if not row["verifiable"]]
    skipped = [row for row in others if not checkable(str(row["text"]))]
    typed = [r for r in found if any(r["label"] in (c.type, c.subtype) for c in claims(str(r["text"])))]
    recall = len(found) / len(verifiable)
    sys.stdout.write(
        f"extractor recall {recall:.3f} ({len(found)}/{len(verifiable)}), skipped {len(skipped)}/{len(others)}"
    )
    assert len(ROWS) >= 200
    assert {row["language"] for row in ROWS} == {"en", "pl", "uk", "ru", "de"}
    assert recall >= 0.97
    assert len(skipped) / len(others) >= 0.93
    assert len(typed) / len(found) >= 0.93


@pytest.mark.parametrize("row", [r for r in ROWS if not r["verifiable"]], ids=lambda r: str(r["id"]))
def test_a_skipped_span_says_why(row: dict[str, object]) -> None:
    (claim,) = claims(str(row["text"]))
    assert claim.skip_reason == row["label"]
    assert claim.skip_reason in SKIP_REASONS


TEXTS = st.text(
    alphabet=st.one_of(st.sampled_from("aB1 .,!?\n\t#*|`-[](){}\"'„”«»:;…👍🏽ü\u200f\u202eשلы語"), st.characters()),
    max_size=400,
)


@given(answer=TEXTS, question=TEXTS)
@settings(max_examples=150, deadline=None)
def test_offsets_are_exact_on_any_text(answer: str, question: str) -> None:
    found = claims(answer, question)
    position = 0
    for claim in found:
        assert answer[claim.start : claim.end] == claim.text
        assert claim.text.strip() == claim.text != ""
        assert claim.start >= position
        position = claim.end
    assert isinstance(abstains(question, answer, found), bool)
    assert [claim.id for claim in found] == [f"c{n}" for n in range(1, len(found) + 1)]


def test_no_word_of_a_plain_answer_is_lost() -> None:
    answer = "The fee is 5 euros. It rose in May, and nobody complained about it! Was it fair? Some said so."
    found = claims(answer)
    kept = "".join(claim.text for claim in found)
    assert sorted("".join(kept.split()).replace(",", "").replace("and", "")) == sorted(
        "".join(answer.split()).replace(",", "").replace("and", "")
    )


@pytest.mark.parametrize("answer", ["Yes.", "No", "42 kg", "Tak.", "Так", "Nein.", "Paris", "Da, sicher"])
def test_a_short_answer_is_a_claim_about_the_question(answer: str) -> None:
    (claim,) = claims(answer, "Is it Paris?")
    assert claim.verifiable
    assert claim.premise == "Is it Paris?"


@pytest.mark.parametrize("answer", ["", "   \n", "\t"])
def test_an_empty_answer_has_no_claims(answer: str) -> None:
    assert claims(answer) == ()


@pytest.mark.req("R9")
def test_markdown_blocks() -> None:
    answer = (
        "### Stock\nThese are left:\n\n* **A1**: 40 units\n* A2 is gone.\n\n| sku | qty |\n|---|---|\n| B7 | 12 |\n"
    )
    found = claims(answer)
    assert [c.text for c in found if c.skip_reason == "heading"] == ["Stock", "These are left:", "| sku | qty |"]
    assert [(c.text, c.premise) for c in found if c.verifiable] == [
        ("**A1**: 40 units", "These are left"),
        ("A2 is gone.", "These are left"),
        ("| B7 | 12 |", "| sku | qty |"),
    ]


def test_arguments_in_code_are_claims_of_their_own() -> None:
    found = claims('```python\nstore = open_store("a.db", mode="r", readonly=True)\n```')
    assert [(c.text, c.type, c.premise) for c in found] == [
        ('mode="r"', "code", "open_store"),
        ("readonly=True", "code", "open_store"),
    ]


def test_code_without_anything_to_check_is_skipped() -> None:
    (claim,) = claims("Text of the block follows here:\n```\nhello world\n```")[1:]
    assert claim.skip_reason == "code"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Unit A uses 12 W [1] and unit B uses 20 W [1].", ["Unit A uses 12 W [1]", "unit B uses 20 W [1]."]),
        ("The file is staged and the monitor is running.", ["The file is staged", "the monitor is running."]),
        ("Based on the context, dogs are allowed.", ["dogs are allowed."]),
        ("Salt and pepper are on the table.", ["Salt and pepper are on the table."]),
        (
            "В тариф «Старт» входят 3 пользователя, поддержка по почте и выделенный менеджер.",
            ["В тариф «Старт» входят 3 пользователя", "поддержка по почте", "выделенный менеджер."],
        ),
    ],
)
def test_coordinated_claims(answer: str, expected: list[str]) -> None:
    assert checkable(answer) == expected


def test_an_over_long_sentence_is_cut_and_nothing_is_lost() -> None:
    answer = "word " * 2000
    found = claims(answer)
    assert max(len(claim.text) for claim in found) <= 700
    assert sum(len(claim.text.split()) for claim in found) == 2000


def test_passive_actions_count_only_where_tools_ran() -> None:
    tool = Passage(source_id="t", text="save() -> ok", kind="tool_result")
    assert claims("The policy was updated last spring.")[0].subtype != "action_done"
    assert claims("The policy was updated last spring.", "", tool)[0].subtype == "action_done"


def test_words_inside_a_quote_do_not_skip_it() -> None:
    (claim,) = claims('The memo says: "We will pause hiring in Q1 and Q2".')
    assert claim.verifiable
    assert claim.type == "quote"


def test_citations_are_read_inside_and_behind() -> None:
    found = claims("Water boils at 100 degrees.[2] Ice melts at zero [a-1, b2].")
    assert [claim.citations for claim in found][-1] == ("a-1", "b2")
    assert found[0].citations == ("2",)


ABSTENTIONS = [
    ("What is the fee?", "I'm sorry, I'm unable to find information about the fee."),
    ("What is the fee?", "The documents do not mention a fee."),
    ("Який штраф?", "У наданих матеріалах недостатньо даних, щоб відповісти на це запитання."),
    ("Jaki jest okres wypowiedzenia?", "Nie znalazłem w dostępnych źródłach informacji o okresie wypowiedzenia."),
    ("Каков штраф?", "В документах нет информации о штрафе."),
    ("Was steht dort?", "In den Dokumenten konnte ich leider keine Richtlinie finden."),
    ("How do I reset it?", "Which model do you have?"),
    (
        "What does the policy say?",
        "The index lists a section 4.2 'Leave' [idx], but its text is not in the documents.",
    ),
    ("Any fee?", "I don't know."),
]


@pytest.mark.parametrize(("question", "answer"), ABSTENTIONS)
def test_abstentions(question: str, answer: str) -> None:
    assert abstains(question, answer, claims(answer, question))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "How many orders did ZX-404 place?",
            "There is no account ZX-404 in the data, so no orders were found for it.",
        ),
        ("What is the fee?", "The documents do not mention it, but the fee is usually 20 euros."),
        ("Warranty and returns?", "The warranty is 3 years. I could not find the return period."),
        ("What is the fee?", "The fee is 20 euros."),
        ("Is it free?", "No."),
        ("Hi", "Hello!"),
        ("Book a room", "Which date? (Today is Tuesday, 8 September 2026.) What time?"),
        ("Can I pay later?", "Sorry, the shop does not accept late payments."),
    ],
)
def test_no_abstentions(question: str, answer: str) -> None:
    assert not abstains(question, answer, claims(answer, question))


@pytest.mark.parametrize(
    "piece",
    ["The limit is 7 attempts. ", "- item with 3 parts\n", "a, b and c; ", "f(x=1) ", "| a | b |\n", '"', "("],
)
def test_a_megabyte_is_read_whole(piece: str) -> None:
    answer = piece * (300_000 // len(piece))
    found = claims(answer)
    assert all(answer[c.start : c.end] == c.text for c in found[::97])
    assert len(found) <= len(answer) // len(piece) + 2 + len(answer) // 100


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How do I lift a hamster?", "Use both hands and support its bottom with one hand."),
        ("Who sings it?", "Haley Reinhart sings 'Stop! Listen! What's That Sound?'"),
        ("What about the price?", "While there is no direct mention of a free tier, the price was lowered in May."),
        ("Tell me about Angel Oak.", "Based on the given data, here is an overview of Angel Oak:"),
        ("Tell me about Angel Oak.", "Here is an overview of Angel Oak:\n- The oak is 400 years old."),
    ],
)
def test_what_looks_like_no_claim_but_is_one(question: str, answer: str) -> None:
    assert len(checkable(answer, question)) == 1
    assert not abstains(question, answer, claims(answer, question))


@pytest.mark.parametrize(
    "answer", ["I'll hand you over to a human agent.", "Let me transfer you to our support team."]
)
def test_a_handover_is_an_abstention(answer: str) -> None:
    assert abstains("Where is my order?", answer, claims(answer, "Where is my order?"))


@pytest.mark.parametrize(
    ("answer", "fact"),
    [
        (
            "i love t bone steak ! it ' s the most popular steak in the us !",
            "it ' s the most popular steak in the us !",
        ),
        ("I love cats! they are small and furry.", "they are small and furry."),
        ("I love gardening, it is considered a relaxing activity.", "I love gardening, it is considered a relaxing"),
        ("However, customers did mention that the food was delicious.", "customers did mention that the food was"),
        ("There is no scientific evidence to support this theory.", "There is no scientific evidence to support"),
    ],
)
def test_a_fact_beside_an_opinion_stays_a_claim(answer: str, fact: str) -> None:
    """A hallucination in a skipped span would be silence."""
    assert any(fact in text for text in checkable(answer))


@pytest.mark.parametrize(
    "answer",
    [
        "I love your idea!",
        "I love it, my favourite.",
        "The view was breathtaking.",
        "There is no evidence for that in the documents.",
        "There is insufficient evidence in the provided context.",
    ],
)
def test_an_opinion_or_a_refusal_alone_is_no_claim(answer: str) -> None:
    assert checkable(answer) == []
