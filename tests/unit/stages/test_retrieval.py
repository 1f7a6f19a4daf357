"""Windows: the same as in training, exact offsets, linear cost, the right passage among many."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercheck_schemas.interaction import Passage
from aftercheck_worker.models.base import ModelInfo
from aftercheck_worker.stages.retrieval import Index, PassageStore, Query, spans
from aftercheck_worker.text.passages import units
from training import window as trained

WORDS = [
    "fee",
    "plan",
    "month",
    "warranty",
    "bridge",
    "river",
    "order",
    "queue",
    "server",
    "price",
    "Acme",
    "Norland",
    "customers",
    "storage",
    "limit",
    "retry",
    "open",
    "closed",
]


def prose(rng: random.Random, sentences: int) -> str:
    out: list[str] = []
    for _ in range(sentences):
        words = rng.choices(WORDS, k=rng.randrange(4, 16))
        out.append(" ".join(words).capitalize() + f" {rng.randrange(2000)}" + rng.choice([".", "!", ". Dr.", "?"]))
    return " ".join(out)


def passages(*texts: str) -> list[Passage]:
    return [Passage(source_id=f"d{n}", text=text) for n, text in enumerate(texts)]


@pytest.mark.parametrize("seed", range(12))
def test_windows_equal_those_of_training(seed: int) -> None:
    rng = random.Random(seed)
    texts = [prose(rng, rng.randrange(3, 30)) for _ in range(rng.randrange(1, 8))]
    texts.append('{"name": "Bar", "hours": {"Monday": "8:0-17:0", "Tuesday": null}, "stars": [4, 5]}')
    claim, question = " ".join(rng.choices(WORDS, k=7)), " ".join(rng.choices(WORDS, k=3))
    assert [u.text for text in texts for u in units(text)] == [s for text in texts for s in trained.sentences(text)]
    (windows,) = Index(passages(*texts)).windows([Query(claim=claim, question=question)])
    assert windows[0].text == trained.select_window(claim, question, texts)


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_units_have_exact_offsets(text: str) -> None:
    position = -1
    for unit in units(text):
        assert 0 <= unit.start <= unit.end <= len(text)
        assert unit.text
        if not text.strip().startswith(("{", "[")):
            assert unit.start >= position
            position = unit.start


def test_spans_lead_back_to_the_sources() -> None:
    texts = passages("Alpha one. The fee is 5 euros. Beta two.", "Gamma three.")
    (windows,) = Index(texts).windows([Query(claim="The fee is 5 euros")])
    found = spans(windows[0], texts)
    assert {source for source, _, _ in found} == {"d0", "d1"}
    assert next(texts[0].text[a:b] for source, a, b in found if source == "d0") == texts[0].text


@pytest.mark.req("R14")
def test_the_one_passage_that_matters_is_found_among_two_hundred() -> None:
    rng = random.Random(7)
    texts = [prose(rng, 12) for _ in range(199)]
    texts.insert(140, "Section 9. The zeppelin hangar holds 31 airships.")
    (windows,) = Index(passages(*texts)).windows([Query(claim="The hangar holds 31 airships")])
    assert 140 in windows[0].sources
    assert windows[0].relevance == pytest.approx(1.0)


def test_no_text_no_window() -> None:
    assert Index([]).windows([Query(claim="x")]) == [()]
    assert Index(passages("   ")).windows([Query(claim="x")]) == [()]


def test_a_second_window_holds_other_units() -> None:
    rng = random.Random(3)
    (windows,) = Index(passages(prose(rng, 80))).windows([Query(claim="fee plan month warranty")], count=2)
    assert len(windows) == 2
    assert not {p.start for p in windows[0].pieces} & {p.start for p in windows[1].pieces}


def test_the_claim_is_never_cut_and_the_window_keeps_its_budget() -> None:
    rng = random.Random(5)
    (windows,) = Index(passages(prose(rng, 200))).windows([Query(claim=" ".join(WORDS * 20))], budget_words=100)
    assert sum(len(p.text.split()) for p in windows[0].pieces) <= 100


def test_cost_is_linear_in_claims_and_units() -> None:
    def operations(claims: int, texts: int) -> int:
        rng = random.Random(1)
        index = Index(passages(*(prose(rng, 10) for _ in range(texts))))
        index.windows([Query(claim=" ".join(rng.choices(WORDS, k=6))) for _ in range(claims)])
        return index.operations

    small = operations(10, 50)
    assert operations(20, 50) <= 2.6 * small
    assert operations(10, 200) <= 5.5 * small


class LetterEncoder:
    """Embeds a text by one letter, so that the dense ranking is known."""

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(name="letters", revision="0")

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [[1.0, 0.0] if "z" in text else [0.0, 1.0] for text in texts]


def test_an_encoder_brings_in_what_words_do_not_share() -> None:
    rng = random.Random(2)
    texts = passages(*(prose(rng, 10) for _ in range(30)), "Zweibrücken zzz.")
    query = Query(claim="zeta fee")
    (plain,) = Index(texts).windows([query], budget_words=40)
    (dense,) = Index(texts, LetterEncoder()).windows([query], budget_words=40)
    assert 30 not in plain[0].sources
    assert 30 in dense[0].sources


def test_a_store_marks_its_evidence() -> None:
    store = PassageStore(passages("The fee is 5 euros.", "Dogs bark."))
    assert [(p.source_id, p.kind) for p in store.search("How high is the fee?", 1)] == [("d0", "knowledge_base")]
