"""R13's lexical baseline, exact at its thresholds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import Claim, Passage, Verdict
from aftercheck_worker import testing
from aftercheck_worker.models import lexical
from aftercheck_worker.models.base import Pair, PairScorer
from aftercheck_worker.stages import verification

WORDS = [f"w{n}" for n in range(20)]


def verify(claim: str, *passages: Passage) -> Verdict:
    item = verification.Item(
        interaction=testing.interaction(claim, *passages),
        claims=(Claim(id="c1", text=claim, start=0, end=len(claim)),),
    )
    (found,) = verification.LexicalVerifier(lexical.LexicalScorer()).verify([item])
    (verdict,) = found.verdicts
    return verdict


def passage(source_id: str, text: str, trust: float = 1.0) -> Passage:
    return Passage(source_id=source_id, text=text, trust=trust)


@pytest.mark.req("R13")
def test_tokens_are_lower_cased_whitespace_tokens() -> None:
    assert lexical.tokens("The  Fee\tis 5 EUR.\nthe") == {"the", "fee", "is", "5", "eur."}


@pytest.mark.req("R13")
def test_overlap_of_an_empty_claim_is_zero() -> None:
    assert lexical.overlap(frozenset(), frozenset({"a"})) == 0.0


def test_the_scorer_fills_the_protocol() -> None:
    scorer = lexical.LexicalScorer()
    (score,) = scorer.score([Pair(premise="a b", claim="a c")])

    assert isinstance(scorer, PairScorer)
    assert (score.entailment, score.neutral, score.contradiction) == (0.5, 0.5, 0.0)


@pytest.mark.req("R13")
@pytest.mark.parametrize(
    ("shared", "trust", "status", "confidence", "cited"),
    [
        (20, 1.0, "supported", 1.0, 1),
        (13, 1.0, "supported", 0.65, 1),
        (12, 1.0, "unclear", 0.5, 3),
        (4, 1.0, "unclear", 0.5, 3),
        (3, 1.0, "not_found", 0.85, 3),
        (0, 1.0, "not_found", 1.0, 3),
        (20, 0.65, "supported", 0.65, 1),
        (20, 0.64, "unclear", 0.5, 3),
        (20, 0.15, "not_found", 0.85, 3),
    ],
)
def test_thresholds(shared: int, trust: float, status: str, confidence: float, cited: int) -> None:
    best = passage("best", " ".join(WORDS[:shared]) or "none", trust)
    others = [passage(f"o{n}", f"other {n}", trust) for n in range(4)]

    verdict = verify(" ".join(WORDS), *others[:2], best, *others[2:])

    assert verdict.status == status
    assert verdict.confidence == pytest.approx(confidence)
    assert len(verdict.evidence) == cited
    assert shared == 0 or verdict.evidence[0].source_id == "best"


@pytest.mark.req("R13")
def test_no_evidence_is_not_found_with_08_and_nothing_cited() -> None:
    verdict = verify("anything at all")

    assert (verdict.status, verdict.confidence, verdict.evidence) == ("not_found", 0.8, ())
    assert verdict.reason == "no_evidence_pool"


@pytest.mark.req("R13")
def test_trust_decides_between_equal_overlaps() -> None:
    verdict = verify("a b c", passage("low", "a b c", 0.7), passage("high", "a b c", 0.9))

    assert [e.source_id for e in verdict.evidence] == ["high"]
    assert verdict.confidence == pytest.approx(0.9)


@pytest.mark.req("R8", "R10")
@pytest.mark.parametrize(
    "useless",
    [
        Passage(source_id="t", text="the fee is 5", kind="tool_result", ok=False),
        Passage(source_id="t", text="the fee is 5", kind="prior_assistant"),
        Passage(source_id="t", text="   "),
    ],
)
def test_failed_tools_own_words_and_blanks_are_no_evidence(useless: Passage) -> None:
    assert verify("the fee is 5", useless).reason == "no_evidence_pool"


@pytest.mark.req("I6")
@given(
    words=st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=12),
    texts=st.lists(st.text(min_size=1, max_size=400).map(lambda t: t * 9), min_size=1, max_size=5),
)
def test_evidence_is_verbatim_at_its_offsets(words: list[str], texts: list[str]) -> None:
    passages = [passage(str(n), text) for n, text in enumerate(texts)]

    verdict = verify(" ".join(words), *passages)

    for evidence in verdict.evidence:
        text = texts[int(evidence.source_id)]
        assert text[evidence.start : evidence.end] == evidence.text
        assert 0 < len(evidence.text) <= max(verification.EVIDENCE_CHARS, 1)


@pytest.mark.req("I6")
def test_a_long_passage_is_cited_where_the_words_are() -> None:
    text = "filler " * 1_000 + "the cancellation fee is five euros " + "filler " * 1_000

    verdict = verify("the cancellation fee is five euros", passage("1", text))

    assert "the cancellation fee is five euros" in verdict.evidence[0].text


@pytest.mark.req("R10", "R17")
@pytest.mark.parametrize(
    ("label", "exists", "entails"),
    [("doc-a", True, True), ("2", True, False), ("9", False, None), ("doc-z", False, None), ("²", False, None)],
)
def test_a_citation_must_exist_and_entail(label: str, exists: bool, entails: bool | None) -> None:
    claim = Claim(id="c1", text="the fee is five", start=0, end=15, citations=(label,))
    item = verification.Item(
        interaction=testing.interaction(
            claim.text, passage("doc-a", "the fee is five"), passage("doc-b", "cats sleep")
        ),
        claims=(claim,),
    )

    (found,) = verification.LexicalVerifier(lexical.LexicalScorer()).verify([item])

    (citation,) = found.citations
    assert (citation.exists, citation.entails) == (exists, entails)


def test_a_batch_costs_one_call_and_keeps_its_order() -> None:
    scorer = testing.ScriptedScorer({})
    items = [
        verification.Item(
            interaction=testing.interaction(f"claim {n}", passage("1", "x")),
            claims=(Claim(id="c1", text=f"claim {n}", start=0, end=7),),
        )
        for n in range(5)
    ]

    found = verification.LexicalVerifier(scorer).verify(items)

    assert len(found) == 5
    assert [[pair.claim for pair in call] for call in scorer.calls] == [[f"claim {n}" for n in range(5)]]
