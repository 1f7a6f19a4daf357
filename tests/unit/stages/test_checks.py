"""Checks: what convicts, what only caps, and what must not be touched."""

from __future__ import annotations

import random

import pytest

from aftercheck_schemas.evaluation import Claim
from aftercheck_schemas.interaction import Interaction, Passage
from aftercheck_schemas.vocabulary import EvidenceKind
from aftercheck_worker.stages import evidence
from aftercheck_worker.stages.checks import Alignment, Finding, run
from aftercheck_worker.stages.checks.citations import judge, resolve
from aftercheck_worker.stages.checks.doctrine import RULES
from aftercheck_worker.stages.claims import split


def findings(answer: str, *texts: str, kind: EvidenceKind = "context", question: str = "") -> list[Finding]:
    """Findings about the last verifiable claim of an answer."""
    passages = tuple(Passage(source_id=f"d{n}", text=text, kind=kind) for n, text in enumerate(texts))
    interaction = Interaction(trace_id="t", span_id="s", app="a", question=question, answer=answer, passages=passages)
    pool = evidence.pool(interaction)
    claims = [claim for claim in split(interaction) if claim.verifiable]
    return list(run(claims, Alignment(pool.sources, question), pool.failed)[-1])


def reasons(answer: str, *texts: str, kind: EvidenceKind = "context", question: str = "") -> set[tuple[str, str]]:
    return {(f.effect, f.reason) for f in findings(answer, *texts, kind=kind, question=question)}


CONVICTED = [
    ("The dose is 50 mg once a day.", "The dose is 5 mg once a day.", "number_mismatch"),
    ("The trail is 12 miles long.", "The trail is 12 km long.", "number_mismatch"),
    ("The bridge was opened on 4 May 1998.", "The bridge was opened on 4 June 1998.", "date_mismatch"),
    ("Zwrot po 14 dniach jest możliwy.", "Zwrot po 14 dniach nie jest możliwy.", "negation_flip"),
    ("Доставка не входить у вартість.", "Доставка входить у вартість.", "negation_flip"),
    ("Гости могут заносить велосипеды.", "Гости не могут заносить велосипеды.", "negation_flip"),
    ("Die Gebühr ist erstattbar.", "Die Gebühr ist nicht erstattbar.", "negation_flip"),
    ("All rooms have a private balcony.", "Some rooms have a private balcony.", "quantifier_flip"),
    ("Pets are allowed in the garden flats.", "Pets are forbidden in the garden flats.", "antonym"),
    (
        "The archive is open on weekends.",
        "The archive is open from 9 am to 4 pm on weekdays and is closed on weekends.",
        "antonym_clause",
    ),
    (
        "The regional office of the fund is in Osvel.",
        "The regional office of the fund is in Brellin.",
        "entity_mismatch",
    ),
    ('He said: "We will never sell the old mill."', 'He said: "We will never sell the old bank."', "quote_altered"),
    ('He said: "We have never lost a customer."', "He commented on the results.", "quote_not_found"),
    (
        "The contact is jan.nowak@example.com today.",
        "The contact is jan.novak@example.com today.",
        "identifier_mismatch",
    ),
]


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        (
            "The archive is closed on weekends.",
            "The archive is open from 9 am on weekdays and is closed on weekends.",
        ),
        ("The archive is open on weekdays.", "The archive is open on weekdays, but closed on weekends."),
        ("Exports rose in May.", "Exports rose in May while imports fell in June."),
        ("The lower deck opened first.", "The lower deck opened first and the upper deck opened last."),
    ],
)
def test_an_opposite_in_another_clause_convicts_nobody(claim: str, passage: str) -> None:
    assert not [f for f in findings(claim, passage) if f.effect == "convict"]


@pytest.mark.req("R10", "R15")
@pytest.mark.parametrize(("claim", "passage", "reason"), CONVICTED)
def test_an_aligned_anchor_convicts(claim: str, passage: str, reason: str) -> None:
    found = [f for f in findings(claim, passage) if f.effect == "convict"]
    assert reason in {f.reason for f in found}
    for finding in found:
        assert finding.status in ("contradicted", "not_found")
        assert all(passage[e.start : e.end] == e.text for e in finding.evidence)


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The dose is 5 mg once a day.", "The dose is 5 mg once a day."),
        ("Turnover was EUR 1.25 million.", "Turnover was EUR 1,250,000."),
        ("Prosecutors are seeking the death penalty.", "Prosecutors aren't swayed and will seek the death penalty."),
        ("Heidi, 28, rode back to mile 17.", "She rode back to mile 17."),
        ("The ATM in the US lobby is open.", "The ATM in the U.S. lobby is open."),
        ("She took a 3.5 out of 5 rating.", "Rating: 3.5 stars for her."),
        ("The prize went to Osvel.", "The prize for music went to Brellin. The prize went to Osvel."),
        ("Not only the fee but the deposit is returned.", "The fee and the deposit are returned."),
        ("Gravy is usually not used in preparing this food.", "Gravy is not usually used in preparing this food."),
        (
            "US officials called for his release, but refused to bargain with them.",
            "US officials called for his release, but wouldn't bargain with them.",
        ),
        ("He fights for the no 1 jersey of the old club.", "He fights for the jersey of the old club."),
        ("Larch is a conifer.", "Larch is a conifer. Larch Ltd is not a conifer nursery."),
    ],
)
def test_no_false_conviction(claim: str, passage: str) -> None:
    assert not [f for f in findings(claim, passage) if f.effect == "convict"]


@pytest.mark.parametrize(
    ("claim", "passages", "effect", "reason"),
    [
        (
            "The service is used by 3,400 companies.",
            ["The service is used by many companies."],
            "cap",
            "number_without_counterpart",
        ),
        (
            "Both plans cost 30 euros together.",
            ["Plan A costs 10 euros.", "Plan B costs 20 euros."],
            "escalate",
            "number_derived",
        ),
        (
            "Items can be returned within 30 days.",
            ["Return policy AMER: 20 days.", "Return policy EMEA: 30 days."],
            "cap",
            "conflicting_sources",
        ),
        ("Run it with --fast-mode now.", ["Run it with care."], "cap", "identifier_not_in_evidence"),
        (
            'It says: "Readings ≥ 37.5 °C require re-testing".',
            ["Readings ≥ 37.5 °C require re‑testing…"],
            "support",
            "quote_exact",
        ),
        ("A2 is out of stock.", ["| sku | qty |\n|---|---|\n| A1 | 40 |\n| A2 | 0 |"], "support", "row_matches"),
        (
            "B7 is stocked at North.",
            ["| sku | site |\n|---|---|\n| A1 | North |\n| B7 | South |"],
            "convict",
            "row_has_other_value",
        ),
        ("They said it would double next year.", ["Board minutes: target doubled."], "cap", "ambiguous_reference"),
    ],
)
def test_other_effects(claim: str, passages: list[str], effect: str, reason: str) -> None:
    assert (effect, reason) in reasons(claim, *passages, question="What about it?")


def test_a_number_of_the_question_needs_no_source() -> None:
    assert not reasons("Order 5521 is late.", "Orders may be late.", question="Where is order 5521?") & {
        ("cap", "number_not_in_evidence")
    }


@pytest.mark.parametrize(
    ("claim", "line", "turned"),
    [
        ("Copper is more reactive than iron.", "Iron is more reactive than copper, so it displaces copper.", True),
        ("The ferry is faster than the train.", "The train is faster than the ferry.", True),
        ("Kupfer ist teurer als Eisen.", "Eisen ist teurer als Kupfer.", True),
        ("Медь дороже, чем железо.", "Железо дороже, чем медь.", False),  # its comma ends the clause: left alone
        ("Iron is more reactive than copper.", "Iron is more reactive than copper.", False),
        ("Copper is less reactive than iron.", "Iron is more reactive than copper.", False),
        ("Copper is not more reactive than iron.", "Iron is more reactive than copper.", False),
        ("The ferry is slower than the train.", "The train is faster than the ferry.", False),
        ("Copper is more reactive than gold.", "Iron is more reactive than copper.", False),
        ("The ferry is faster than the train.", "The train is not faster than the ferry.", False),
        ("The fee is more than 5 euros.", "The fee is more than 3 euros.", False),
    ],
)
def test_a_comparison_turned_around(claim: str, line: str, turned: bool) -> None:
    assert (("convict", "comparison_reversed") in reasons(claim, line)) is turned


@pytest.mark.parametrize(
    ("claim", "result", "found"),
    [
        ("There is no account ZX-404 in the data.", "accounts lookup 'ZX-404' -> rows: 0", True),
        ("No orders were found for ZX-404.", "select orders where account='ZX-404' -> 0 rows", True),
        ("Nie znaleziono zamówień dla ZX-404.", "zamówienia konta ZX-404: count: 0", True),
        ("There is no account ZX-404 in the data.", "accounts lookup 'ZX-404' -> rows: 3", False),
        ("There is no account ZX-405 in the data.", "accounts lookup 'ZX-404' -> rows: 0", False),
        ("No refunds were found for ZX-404.", "orders lookup 'ZX-404' -> rows: 0", False),
        ("No orders were found for ZX-404.", "orders 'ZX-404' -> rows: 0; archive orders 'ZX-404' -> rows: 2", False),
        ("Orders of ZX-404 were shipped.", "orders lookup 'ZX-404' -> rows: 0", False),
        ("No orders were found for ZX-404.", "orders lookup 'ZX-404' -> total: 0.7", False),
    ],
)
def test_an_empty_result_proves_only_what_was_looked_up(claim: str, result: str, found: bool) -> None:
    assert (("support", "empty_result") in reasons(claim, result, kind="tool_result")) is found
    assert ("support", "empty_result") not in reasons(claim, result)  # a document that mentions 0 rows is no result


def test_a_pronoun_takes_the_name_of_the_dialogue() -> None:
    sources = evidence.pool(
        Interaction(
            trace_id="t",
            span_id="s",
            app="a",
            passages=(Passage(source_id="d", text="X5 drill: warranty 3 years. X7 drill: warranty 5 years."),),
        )
    ).sources
    claim = Claim(id="c1", text="It has a warranty of 5 years.", start=0, end=29, type="number")
    (found,) = run([claim], Alignment(sources, "And its warranty?", ["tell me about the X5 drill"]))
    assert [f.reason for f in found if f.effect == "convict"] == ["number_mismatch"]
    (other,) = run([claim], Alignment(sources, "And its warranty?", ["tell me about the X7 drill"]))
    assert not [f for f in other if f.effect == "convict"]


def test_parameters_of_a_known_function() -> None:
    signature = "def open_store(path: str, readonly: bool = False) -> Store: ..."
    assert reasons('```\nopen_store("a", mode="r")\n```', signature) == {("convict", "unknown_parameter")}
    assert reasons('```\nopen_store("a", readonly=True)\n```', signature) == {("support", "parameter_exists")}
    assert reasons('```\nopen_store("a", readonly=True)\n```', "No such thing.") == {
        ("cap", "function_not_in_evidence")
    }
    assert reasons("```\nf(x=1)\n```", "def f(**options): pass") == {("cap", "parameter_not_listed")}


@pytest.mark.req("R15")
@pytest.mark.parametrize(
    ("answer", "text", "kind", "expected"),
    [
        ("I've starred the message.", "add_star(id=9) -> error 403", "tool_result", ("convict", "action_failed")),
        (
            "The vendor bill was not saved.",
            "save_bill(vendor=77) -> error: period closed",
            "tool_result",
            ("support", "action_failed"),
        ),
        ("I've sent the report to Ada.", "send_email(to=ada) -> ok", "tool_result", ("support", "action_logged")),
        ("I've deleted the report.", "send_email(to=ada) -> ok", "tool_result", ("cap", "action_not_logged")),
        ("I've sent the report to Ada.", "Reports are sent on Monday.", "context", ("convict", "no_action_log")),
        (
            "The queue is currently empty.",
            "The queue usually drains within a minute.",
            "context",
            ("convict", "no_telemetry"),
        ),
        ("Wysłałam raport do Ady.", "send_email(to=ada) -> ok", "tool_result", ("support", "action_logged")),
        ("Я надіслав звіт до Ади.", "send_email(to=ada) -> ok", "tool_result", ("support", "action_logged")),
        ("Я отправил отчёт для Ады.", "send_email(to=ada) -> ok", "tool_result", ("support", "action_logged")),
        ("Ich habe den Bericht gesendet.", "send_email(to=ada) -> ok", "tool_result", ("support", "action_logged")),
        ("I have not sent the report.", "send_email(to=ada) -> ok", "tool_result", ("convict", "action_was_done")),
        (
            "PDF saved to /srv/reports/r.pdf.",
            "render_pdf() -> ok, path=/tmp/r.pdf",
            "tool_result",
            ("convict", "identifier_mismatch"),
        ),
    ],
)
def test_doctrine(answer: str, text: str, kind: EvidenceKind, expected: tuple[str, str]) -> None:
    assert expected in reasons(answer, text, kind=kind)


def test_the_doctrine_is_a_closed_table() -> None:
    assert [(rule.subtype, "context" in rule.kinds) for rule in RULES] == [
        ("action_done", False),
        ("system_state", False),
    ]


@pytest.mark.req("R10", "R17")
def test_each_citation_occurrence_is_judged_by_its_own_source() -> None:
    answer = "Unit A uses 12 W [1] and unit B uses 20 W [1]. Unit C uses 9 W [7]."
    passages = (Passage(source_id="1", text="Unit A uses 12 W."), Passage(source_id="2", text="Unit B uses 20 W."))
    interaction = Interaction(trace_id="t", span_id="s", app="a", answer=answer, passages=passages)
    alignment = Alignment(evidence.pool(interaction).sources)
    found = [
        (f.label, f.exists, f.entails)
        for claim in split(interaction)
        for f in judge(alignment.subject(claim), alignment, resolve(claim, alignment.sources))
    ]
    assert found == [("1", True, True), ("1", True, False), ("7", False, None)]


def test_a_verifiers_score_decides_a_citation_but_not_over_its_numbers() -> None:
    passages = (
        Passage(source_id="a", text="The notice period is three months."),
        Passage(source_id="b", text="Deposits are capped."),
    )
    interaction = Interaction(
        trace_id="t", span_id="s", app="a", answer="The notice period is 3 months [b].", passages=passages
    )
    alignment = Alignment(evidence.pool(interaction).sources)
    (claim,) = split(interaction)
    (finding,) = judge(alignment.subject(claim), alignment, resolve(claim, alignment.sources), [0.99])
    assert finding.entails is False


def test_comparisons_grow_with_claims_not_with_claims_times_lines() -> None:
    def lines(texts: int) -> int:
        rng = random.Random(3)
        words = [f"word{rng.randrange(4000)}" for _ in range(texts * 30)]
        passages = tuple(
            Passage(
                source_id=str(n), text=" ".join(words[n * 30 : n * 30 + 30]).replace("0", "o").replace("1", "l") + "."
            )
            for n in range(texts)
        )
        answer = " ".join(f"The fee of plan {n} rises in spring." for n in range(20))
        interaction = Interaction(trace_id="t", span_id="s", app="a", answer=answer, passages=passages)
        alignment = Alignment(evidence.pool(interaction).sources)
        run([c for c in split(interaction) if c.verifiable], alignment)
        return alignment.comparisons

    assert lines(400) <= 6 * max(1, lines(100))
