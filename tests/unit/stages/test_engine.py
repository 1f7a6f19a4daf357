"""The engine: stages together, failures as `unclear`, hostile input, invariances."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercheck_schemas.evaluation import Verdict
from aftercheck_schemas.interaction import Interaction, Passage
from aftercheck_worker.engine import Engine
from aftercheck_worker.models.base import ModelInfo, Pair, PairScore, PairScorer
from aftercheck_worker.models.containment import ContainmentScorer
from aftercheck_worker.stages.claims import split
from aftercheck_worker.stages.verification import Item


class Scripted:
    """Scores by a word in the premise; records what it was asked."""

    def __init__(self, entail: str = "", contradict: str = "", *, fails: bool = False) -> None:
        self.entail, self.contradict, self.fails = entail, contradict, fails
        self.asked: list[Pair] = []
        self.calls = 0

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(name="scripted", revision="0")

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        self.calls += 1
        if self.fails:
            raise RuntimeError("the session died")
        self.asked += pairs
        return [
            PairScore(entailment=0.9, neutral=0.1, contradiction=0.0)
            if self.entail and self.entail in pair.premise
            else PairScore(entailment=0.05, neutral=0.05, contradiction=0.9)
            if self.contradict and self.contradict in pair.premise
            else PairScore(entailment=0.05, neutral=0.95, contradiction=0.0)
            for pair in pairs
        ]


def item(answer: str, *texts: str, question: str = "", elided: bool = False) -> Item:
    passages = tuple(Passage(source_id=f"d{n}", text=text, elided=elided) for n, text in enumerate(texts))
    interaction = Interaction(trace_id="t", span_id="s", app="a", question=question, answer=answer, passages=passages)
    return Item(interaction=interaction, claims=split(interaction))


def verdicts(scorer: PairScorer, one: Item) -> tuple[Verdict, ...]:
    return Engine(scorer).verify([one])[0].verdicts


def test_one_scorer_call_for_a_whole_batch() -> None:
    scorer = Scripted(entail="fee")
    found = Engine(scorer).verify(
        [
            item("The fee is due in May. Dogs bark loudly.", "The fee is due in May."),
            item("Cats sleep a lot.", "Cats sleep."),
        ]
    )
    assert [[v.status for v in f.verdicts] for f in found] == [["supported", "supported"], ["not_found"]]
    assert scorer.calls == 2


@pytest.mark.req("R19")
def test_a_failed_verifier_leaves_claims_unclear() -> None:
    (verdict,) = verdicts(Scripted(fails=True), item("Dogs bark loudly at night.", "Dogs bark."))
    assert (verdict.status, verdict.supported_probability, verdict.reason) == ("unclear", None, "verifier_failed")


def test_a_check_convicts_over_a_sure_model() -> None:
    (verdict,) = verdicts(Scripted(entail="dose"), item("The dose is 50 mg a day.", "The dose is 5 mg a day."))
    assert (verdict.status, verdict.decided_by) == ("contradicted", "check")


def test_a_cut_source_proves_nothing_by_silence() -> None:
    (verdict,) = verdicts(Scripted(), item("Dogs bark loudly at night.", "Dogs bark", elided=True))
    assert (verdict.status, verdict.reason) == ("unclear", "source_cut_off")


def test_without_evidence_nothing_is_asked() -> None:
    scorer = Scripted(entail="dogs")
    (verdict,) = verdicts(scorer, item("Dogs bark loudly at night."))
    assert (verdict.status, verdict.confidence, verdict.reason, scorer.asked) == (
        "not_found",
        0.8,
        "no_evidence_pool",
        [],
    )
    assert verdicts(scorer, item("Dogs bark loudly.", "   "))[0].reason == "context_missing"


def test_short_answers_are_read_with_their_question() -> None:
    scorer = Scripted()
    verdicts(scorer, item("Yes.", "Dogs are allowed.", question="Are dogs allowed?"))
    assert scorer.asked[0].claim == "Are dogs allowed? Yes."


def test_the_previous_claim_is_context_not_evidence() -> None:
    scorer = Scripted()
    verdicts(scorer, item("The drill is red and heavy. It has a warranty.", "X."))
    assert scorer.asked[-1].previous == "The drill is red and heavy."
    assert all("drill" not in pair.premise for pair in scorer.asked)


HOSTILE = [
    "",
    "  ",
    "👍🏽",
    "שלום עולם",
    "\ud800 x",
    "a" * 50_000,
    "```",
    "|||\n|-|",
    "<b>x</b>" * 50,
    "\x00",
    "{" * 300,
    "[1][2][3]",
    '"' * 99,
]


@pytest.mark.parametrize("answer", HOSTILE)
@pytest.mark.parametrize("passage", HOSTILE)
def test_hostile_text_gives_verdicts_not_exceptions(answer: str, passage: str) -> None:
    one = item(answer, passage, question=passage)
    found = verdicts(ContainmentScorer(), one)
    assert [v.claim_id for v in found] == [c.id for c in one.claims if c.verifiable]
    for verdict in found:
        assert 0 <= verdict.confidence <= 1


@given(st.text(max_size=120), st.text(max_size=120), st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text(answer: str, passage: str, question: str) -> None:
    for verdict in verdicts(ContainmentScorer(), item(answer, passage, question=question)):
        for span in verdict.evidence:
            text = passage if span.source_id == "d0" else question
            assert text[span.start : span.end] == span.text


@pytest.mark.req("R10")
def test_an_irrelevant_passage_changes_no_status() -> None:
    base = "The retry limit is 7 attempts."
    for answer in (base, "The retry limit is 9 attempts."):
        alone = [v.status for v in verdicts(ContainmentScorer(), item(answer, base))]
        for noise in ("The build agent was moved.", "Icons and colours changed in 2019.", "Kolejka jest pusta."):
            assert [v.status for v in verdicts(ContainmentScorer(), item(answer, noise, base, noise))] == alone


def test_parameters_name_everything_that_decides() -> None:
    parameters = Engine(ContainmentScorer()).parameters
    assert {"thresholds", "budget_words", "further", "lexicons"} <= parameters.keys()
