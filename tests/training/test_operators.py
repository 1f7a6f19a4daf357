"""Every operator: a changed negative, spans inside it, a twin that keeps the label."""

from __future__ import annotations

import ast
import json
from random import Random

import pytest

from training.bank import Bank
from training.disturb import disturb, surface_noise
from training.operators.addition import addition, list_item, sentence_addition
from training.operators.edit import Context, Operator
from training.operators.entity import entity, exchange
from training.operators.number import date, in_words, number
from training.operators.polarity import antonym, negation, quantifier
from training.operators.record_claim import table_claim, venue_claim
from training.operators.splice import splice
from training.operators.venue_facts import clock
from training.synth import keeps_difference
from training.window import terms

CONTEXT = Context(
    sentences=(
        "Marta Kovacs joined Harbor Labs in 2014.",
        "Pavel Novak was born on 4 May 1971.",
        "The lab sold 1,200 sensors.",
        "Nina Okafor led the design team of Harbor Labs.",
        "The building is large and most rooms are open.",
    ),
    foreign=(
        "The orchestra played in Lisbon, which pleased the mayor of the old town.",
        "He bought lamps, rugs and clocks there.",
        "The village market opens every Sunday in June.",
        "Lena Brandt moved to Oslo after the long winter ended.",
    ),
)
CASES: tuple[tuple[Operator, str], ...] = (
    (number, "The lab sold 1,200 sensors."),
    (number, "Nina led a team of five people."),
    (date, "Pavel Novak was born on 4 May 1971."),
    (entity, "The prize went to Marta Kovacs in the end."),
    (exchange, "In spring Marta Kovacs defeated Nina Okafor."),
    (antonym, "The building is large."),
    (negation, "The building is open."),
    (quantifier, "In the evening most rooms are dark."),
    (addition, "The lab sold all of its sensors, which helped the team."),
    (sentence_addition, "Marta Kovacs joined Harbor Labs in 2014."),
    (list_item, "The lab builds tools, including sensors, cables and pumps."),
    (splice, "Nina Okafor led the design team of Harbor Labs."),
)


@pytest.mark.parametrize(("operator", "claim"), CASES, ids=[str(i) for i in range(len(CASES))])
def test_operator_changes_the_claim_inside_its_spans(operator: Operator, claim: str) -> None:
    made = [edit for seed in range(40) if (edit := operator(claim, CONTEXT, Random(seed))) is not None]
    assert made
    for edit in made:
        assert edit.negative != edit.positive
        assert edit.contradiction in (-1, 0, 1)
        assert edit.spans
        assert all(0 <= a < b <= len(edit.negative) for a, b in edit.spans)


def test_the_twin_of_a_number_keeps_its_value() -> None:
    for seed in range(60):
        edit = number("The lab sold 1,200 sensors.", CONTEXT, Random(seed))
        assert edit is not None
        assert any(form in edit.positive for form in ("1,200", "1200", "1.2 thousand"))


def test_added_text_is_not_in_the_document() -> None:
    known = set(terms(CONTEXT.text))
    for seed in range(30):
        edit = addition("The lab sold all of its sensors.", CONTEXT, Random(seed))
        if edit is not None:
            a, b = edit.spans[0]
            assert not set(terms(edit.negative[a:b])) <= known


def test_venue_facts_are_true_of_the_record() -> None:
    for seed in range(200):
        text, edit = venue_claim(Random(seed))
        record = json.loads(text)
        assert edit.positive != edit.negative
        stars = f"{record['business_stars']:g}"
        if "out of 5 stars" in edit.positive:
            assert f"{stars} out of 5" in edit.positive
        if "out of 5 stars" in edit.negative and "out of 5 stars" in edit.negative[slice(*edit.spans[0])]:
            assert f"{stars} out of 5" not in edit.negative


def test_table_claims_take_wrong_values_from_other_tables() -> None:
    own, other = "title: Sea Fox\nBuilt: 1962\nFlag: Malta", "title: Gull\nBuilt: 1980\nFlag: Cyprus"
    made = [edit for seed in range(20) if (edit := table_claim(own, [other], Random(seed))) is not None]
    assert made
    for edit in made:
        assert any(value in edit.negative for value in ("1980", "Cyprus"))
        assert any(value in edit.positive for value in ("1962", "Malta"))


def test_clock_styles() -> None:
    assert [clock("21:0", style) for style in range(3)] == ["9 pm", "9:00 PM", "21:00"]
    assert [in_words(n) for n in (7, 20, 42)] == ["seven", "twenty", "forty-two"]


def test_disturbances_keep_numbers_and_noise_shifts_spans() -> None:
    text = "In 2014, the lab bought 12 large pumps (all of them new)."
    for seed in range(50):
        assert {"2014", "12"} <= set(disturb(text, Random(seed), 4).replace(",", " ").replace(".", " ").split())
        noisy, shift = surface_noise(text, Random(seed))
        assert noisy[shift:][1:10] == text[1:10]


def test_operators_are_deterministic() -> None:
    for operator, claim in CASES:
        assert operator(claim, CONTEXT, Random(5)) == operator(claim, CONTEXT, Random(5))
    assert ast.literal_eval(repr(venue_claim(Random(3))[1].spans)) == venue_claim(Random(3))[1].spans


@pytest.mark.parametrize(
    ("operator", "claim", "spoken"),
    [
        (quantifier, "It is one of the most violent gangs of the city.", "majority"),
        (quantifier, "So many rooms are dark.", "few"),
        (quantifier, "He is perhaps most famous for his songs.", "majority"),
        (number, "More than 5 rooms are dark.", "More than 6"),
        (number, "The hotel opened on March 24.", "twenty"),
        (exchange, "Harbor Labs is an American firm.", "American is"),
        (antonym, "He is best known as a singer.", "worst"),
    ],
)
def test_operator_leaves_what_it_would_garble(operator: Operator, claim: str, spoken: str) -> None:
    made = [edit for seed in range(60) if (edit := operator(claim, CONTEXT, Random(seed))) is not None]
    assert not [edit for edit in made if spoken in edit.negative or spoken in edit.positive]


def test_a_number_implied_by_the_true_one_is_no_negative() -> None:
    made = [number("More than 500 rooms are dark.", CONTEXT, Random(seed)) for seed in range(80)]
    values = [
        int(edit.negative[a:b].replace(",", ""))
        for edit in made
        if edit
        for a, b in edit.spans
        if edit.negative[a:b].isdigit()
    ]
    assert values
    assert min(values) > 500


def test_two_names_told_together_do_not_stand_for_each_other() -> None:
    context = Context(("The group gets money from Iran, and aid from Syria.", "In May we saw Nina there."), ())
    made = [edit for seed in range(60) if (edit := entity("The group gets aid from Syria.", context, Random(seed)))]
    assert made
    assert not [edit for edit in made if "Iran" in edit.negative]


def test_a_version_of_the_text_is_no_distractor() -> None:
    text = "The old harbor of the town was closed in May. Nobody liked that."
    edited = "The old harbor of the town was closed in May. Everybody liked the new one a lot."
    other = "The harbor of Lisbon opened again. Ships came from everywhere to see it."
    bank = Bank([text, edited, other])
    assert {d.text for d in bank.near(text, Random(3), 1)} == {other}


def test_a_mirrored_claim_keeps_what_differs() -> None:
    assert keeps_difference(
        "Anna (born May 6, 1964) sings.", "Anna (born May 6, 1962) sings.", "Anna (born May 6, 1964) often sings"
    )
    assert not keeps_difference("Anna (born May 6, 1964) sings.", "Anna (born May 6, 1962) sings.", "Anna sings.")
