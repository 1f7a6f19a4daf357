"""Sentences and blocks: abbreviations of five languages, exact offsets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercheck_worker.text.language import detect
from aftercheck_worker.text.lexicon import LANGUAGES, Language, digest, load, pattern
from aftercheck_worker.text.normalise import flat, fold, plain
from aftercheck_worker.text.sentences import blocks, sentences


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "en",
            "Dr. Smith paid $5.20 to Acme Inc. in May. He left.",
            ["Dr. Smith paid $5.20 to Acme Inc. in May.", "He left."],
        ),
        ("en", "See https://a.b/c.d?x=1. Then stop.", ["See https://a.b/c.d?x=1.", "Then stop."]),
        ("pl", "Mam ok. 3 km drogi, tj. dużo. Koniec.", ["Mam ok. 3 km drogi, tj. dużo.", "Koniec."]),
        ("ru", "Он умер в 2023 г. Москва скорбит.", ["Он умер в 2023 г.", "Москва скорбит."]),
        ("ru", "Стоит 5 тыс. руб. в год. Это много.", ["Стоит 5 тыс. руб. в год.", "Это много."]),
        ("uk", "Ціна 5 тис. грн на місяць. Це багато.", ["Ціна 5 тис. грн на місяць.", "Це багато."]),
        ("de", "Im 3. Quartal stieg z. B. der Umsatz. Ende.", ["Im 3. Quartal stieg z. B. der Umsatz.", "Ende."]),
        ("en", "Stop? (Today is Monday.) What now?", ["Stop?", "(Today is Monday.)", "What now?"]),
    ],
)
def test_sentence_ends(language: Language, text: str, expected: list[str]) -> None:
    assert [text[s.start : s.end] for s in sentences(text, language=language)] == expected


@given(st.text(max_size=300), st.sampled_from([*LANGUAGES, "other"]))
@settings(max_examples=150, deadline=None)
def test_every_visible_character_is_in_one_sentence(text: str, language: Language) -> None:
    found = sentences(text, language=language)
    assert (
        "".join(text[s.start : s.end] for s in found).split() == "".join(text[s.start : s.end] for s in found).split()
    )
    assert sum(len("".join(text[s.start : s.end].split())) for s in found) == len("".join(text.split()))


@given(st.text(alphabet=st.one_of(st.sampled_from("#*|`->\n ab."), st.characters()), max_size=200))
@settings(max_examples=150, deadline=None)
def test_blocks_are_ascending_and_trimmed(text: str) -> None:
    position = 0
    for block in blocks(text):
        piece = text[block.start : block.end]
        assert block.start >= position
        assert piece == piece.strip() != ""
        position = block.end


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_folding_keeps_its_way_back(text: str) -> None:
    folded = fold(text)
    assert len(folded.offsets) == len(folded.text) + 1
    assert list(folded.offsets) == sorted(folded.offsets)
    assert len(flat(text)) == len(text)
    plain(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Zwrot po 14 dniach nie jest możliwy.", "pl"),
        ("Доставка входить у вартість замовлення.", "uk"),
        ("Это стоит 5 рублей, и ещё доставка.", "ru"),
        ("Die Gebühr ist nicht erstattbar.", "de"),
        ("The fee is not refundable.", "en"),
        ("北港大桥于1996年建成。", "other"),
        ("", "other"),
    ],
)
def test_language(text: str, language: Language) -> None:
    assert detect(text) == language


@pytest.mark.req("R25")
def test_lexicons_are_complete_and_versioned() -> None:
    english = load("en").patterns.keys()
    for language in LANGUAGES:
        own = load(language)
        assert own.patterns.keys() == english
        assert own.numbers
        assert len(set(own.months.values())) == 12
        assert len(set(own.weekdays.values())) == 7
        for category in english:
            assert not pattern(language, category).search("")
    assert len(digest()) == 64
