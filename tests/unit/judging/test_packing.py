"""Evidence that does not fit is cut near the claims, marked, and quotes find their way back (O-30)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import Claim, ClaimJudgement, Judgement, Passage
from aftercheck_worker.judge.packing import pack, unpack
from aftercheck_worker.stages.judging.quotes import check, fold

CLAIM = Claim(id="c1", text="The comet returns every 76 years.", start=0, end=33)
FILLER = "Nothing of interest was written on this day. "
NEEDLE = "Halley's comet returns about every 76 years."


def test_what_fits_stays_as_it_is() -> None:
    passages = (Passage(source_id="1", text=NEEDLE), Passage(source_id="2", text=FILLER))

    assert pack(passages, [CLAIM]).passages == passages


def test_the_stretch_with_the_claims_words_is_kept_and_marked() -> None:
    text = FILLER * 400 + NEEDLE + " " + FILLER * 400
    packed = pack([Passage(source_id="1", text=text)], [CLAIM], limit=2000)

    (kept,) = packed.passages
    assert NEEDLE in kept.text
    assert len(kept.text) <= 2000
    assert kept.elided
    start = packed.offsets["1"]
    assert text[start : start + len(kept.text)] == kept.text


def test_the_nearest_passages_come_first_and_keep_their_order() -> None:
    passages = [
        Passage(source_id="far", text=FILLER * 40),
        Passage(source_id="near", text=NEEDLE),
        Passage(source_id="other", text=FILLER * 40),
    ]
    packed = pack(passages, [CLAIM], limit=2500)

    assert "near" in [passage.source_id for passage in packed.passages]
    assert not next(p for p in packed.passages if p.source_id == "near").elided
    assert [p.source_id for p in packed.passages] == [
        p.source_id for p in passages if p.source_id in {q.source_id for q in packed.passages}
    ]


def test_a_quote_of_the_stretch_has_the_offsets_of_the_passage() -> None:
    whole = Passage(source_id="1", text=FILLER * 400 + NEEDLE)
    packed = pack([whole], [CLAIM], limit=2000)
    (cut,) = packed.passages
    evidence = check(NEEDLE, "1", {"1": cut}, {"1": fold(cut.text)})
    judgement = Judgement(model="m", claims=(ClaimJudgement(claim_id="c1", status="supported", evidence=evidence),))

    (part,) = unpack(judgement, [whole], packed.offsets).claims[0].evidence

    assert whole.text[part.start : part.end] == part.text == NEEDLE


@given(st.lists(st.text(min_size=1, max_size=3000), max_size=6), st.integers(400, 4000))
def test_any_text_is_packed_inside_the_limit_and_verbatim(texts: list[str], limit: int) -> None:
    passages = [Passage(source_id=str(n), text=text) for n, text in enumerate(texts)]
    packed = pack(passages, [CLAIM], limit=limit)

    assert sum(len(passage.text) for passage in packed.passages) <= limit
    for passage in packed.passages:
        start = packed.offsets.get(passage.source_id, 0)
        assert texts[int(passage.source_id)][start : start + len(passage.text)] == passage.text
