"""The trained verifier's flow around a scorer: batches, further windows, failures, citations, conflicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from aftercheck_schemas import Interaction, Passage, Verdict
from aftercheck_worker.engine import Engine
from aftercheck_worker.models.base import ModelInfo, Pair, PairScore
from aftercheck_worker.stages import claims
from aftercheck_worker.stages.decision import Thresholds
from aftercheck_worker.stages.verification import Findings, Item

FILLER = "The garden of the old mill has seven benches and a pond with many fish. " * 30


class Scorer:
    """Supports a claim whose words all stand in the premise; contradicts when the premise has the word REFUTED."""

    def __init__(self, fail: Callable[[Pair], bool] = lambda _: False) -> None:
        self.calls: list[list[Pair]] = []
        self._fail = fail

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(name="words", revision="1")

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        self.calls.append(list(pairs))
        if any(self._fail(pair) for pair in pairs):
            raise RuntimeError("boom")
        return [_score(pair) for pair in pairs]


def _score(pair: Pair) -> PairScore:
    words = {word.strip(".,").lower() for word in pair.claim.split()}
    held = words <= {word.strip(".,").lower() for word in pair.premise.split()}
    against = 0.9 if "REFUTED" in pair.premise else 0.02
    entailment = 0.95 if held else 0.05
    conflict = min(against, 1 - entailment)
    return PairScore(entailment=entailment, contradiction=conflict, neutral=1 - entailment - conflict)


def item(answer: str, *passages: str | Passage, question: str = "Tell me about the boat.") -> Item:
    listed = tuple(
        p if isinstance(p, Passage) else Passage(source_id=f"s{i}", text=p) for i, p in enumerate(passages, 1)
    )
    interaction = Interaction(
        trace_id="a" * 32, span_id="b" * 16, app="t", question=question, answer=answer, passages=listed
    )
    return Item(interaction=interaction, claims=claims.split(interaction))


def verify(scorer: Scorer, *items: Item) -> list[Findings]:
    return Engine(scorer, thresholds=Thresholds()).verify(items)


def only(found: list[Findings]) -> Verdict:
    ((verdict,),) = (entry.verdicts for entry in found)
    return verdict


@pytest.mark.req("R14", "I6")
def test_a_supported_claim_cites_the_sentence_that_carries_it() -> None:
    text = "The harbour opened early. The boat left the harbour on Monday morning. It rained."
    verdict = only(verify(Scorer(), item("The boat left the harbour on Monday morning.", text)))

    assert verdict.status == "supported"
    for evidence in verdict.evidence:
        assert evidence.text == text[evidence.start : evidence.end]
    assert "boat left" in verdict.evidence[0].text


def test_the_whole_batch_is_one_call() -> None:
    scorer = Scorer()
    text = "The boat left the harbour on Monday morning."

    verify(scorer, *(item(text, text) for _ in range(5)))

    assert [len(call) for call in scorer.calls if call] == [5]


@pytest.mark.req("R14")
def test_what_the_first_window_misses_another_may_support() -> None:
    decoy = "The boat of the harbour is a boat in the harbour; the harbour has a boat. " * 40
    text = f"{decoy}{FILLER}On Monday morning the boat left the harbour quietly."
    verdict = only(verify(Scorer(), item("The boat left the harbour on Monday morning quietly.", text)))

    assert verdict.status == "supported"


@pytest.mark.req("R19")
def test_a_failed_scorer_is_unclear_for_its_answer_only() -> None:
    scorer = Scorer(fail=lambda pair: "poison" in pair.premise)
    good = item("The boat left the harbour on Monday.", "The boat left the harbour on Monday.")
    bad = item("The boat left the harbour on Monday.", "The boat left the harbour on Monday. poison")

    first, second = verify(scorer, good, bad)

    assert first.verdicts[0].status == "supported"
    assert (second.verdicts[0].status, second.verdicts[0].reason) == ("unclear", "verifier_failed")


@pytest.mark.req("R13", "R19")
def test_no_evidence_is_not_found_without_asking_the_model() -> None:
    scorer = Scorer()
    verdict = only(verify(scorer, item("The boat left the harbour on Monday.")))

    assert (verdict.status, verdict.reason) == ("not_found", "no_evidence_pool")
    assert not any(scorer.calls)


@pytest.mark.req("R10")
def test_failed_tools_and_earlier_answers_support_nothing() -> None:
    text = "The boat left the harbour on Monday."
    failed = Passage(source_id="t1", text=text, kind="tool_result", ok=False)
    earlier = Passage(source_id="h1", text=text, kind="prior_assistant")

    verdict = only(verify(Scorer(), item(text, failed, earlier)))

    assert verdict.status != "supported"


def test_low_trust_does_not_support() -> None:
    text = "The boat left the harbour on Monday."
    verdict = only(verify(Scorer(), item(text, Passage(source_id="s1", text=text, trust=0.3))))

    assert verdict.status != "supported"


def test_a_relevant_contradiction_contradicts() -> None:
    verdict = only(
        verify(Scorer(), item("The boat left the harbour early.", "REFUTED: the boat never left the harbour late."))
    )

    assert verdict.status == "contradicted"


@pytest.mark.req("R10", "R17")
def test_citations_are_resolved_and_read_alone() -> None:
    texts = ("The boat left the harbour on Monday.", "The mill has seven benches.")
    (found,) = verify(
        Scorer(), item("The boat left the harbour on Monday [2]. The mill has seven benches [9].", *texts)
    )

    by_label = {citation.label: citation for citation in found.citations}
    assert (by_label["2"].source_id, by_label["2"].entails) == ("s2", False)
    assert not by_label["9"].exists


def test_the_claim_reaches_the_scorer_whole() -> None:
    scorer = Scorer()
    claim = "The boat " + " ".join(f"crossed area{i}," for i in range(40)) + " and left the harbour."

    verify(scorer, item(claim, FILLER))

    asked = " ".join(pair.claim for call in scorer.calls for pair in call)
    assert all(f"area{i}" in asked for i in range(40))
