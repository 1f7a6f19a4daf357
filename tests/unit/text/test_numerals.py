"""Quantities and dates in five languages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftercheck_worker.text.lexicon import Language
from aftercheck_worker.text.numerals import agree, compare, read


@pytest.mark.req("R15")
@pytest.mark.parametrize(
    ("left", "right", "language"),
    [
        ("EUR 1,250,000", "EUR 1.25 million", "en"),
        ("$3.2M", "3,190,000 dollars", "en"),
        ("twenty-five users", "25 users", "en"),
        ("two hundred thousand km", "200,000 km", "en"),
        ("5 km", "5000 m", "en"),
        ("2 hours", "120 minutes", "en"),
        ("1 250 000 zł", "1,25 mln zł", "pl"),
        ("dwadzieścia pięć dni", "25 dni", "pl"),
        ("3.000 Euro", "3000 €", "de"),
        ("fünfundzwanzig Tage", "25 Tage", "de"),
        ("2 тис. грн", "2000 гривень", "uk"),
        ("п'ять днів", "5 днів", "uk"),
        ("3,5 %", "3,5 процента", "ru"),
        ("two years", "24 months", "en"),
    ],
)
def test_equal_quantities(left: str, right: str, language: Language) -> None:
    (one,), (two,) = read(left, language).quantities, read(right, language).quantities
    assert compare(one, two) == "equal" or compare(two, one) == "equal"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("5 mg", "50 mg", "different"),
        ("12 kg", "12 tonnes", "different"),
        ("3 days", "3 months", "incomparable"),
        ("5 euros", "5 dollars", "incomparable"),
        ("1,250 units", "1,251 units", "different"),
        ("6.7 million", "6.8 million", "different"),
        ("48-year-old", "48 years", "incomparable"),
    ],
)
def test_unequal_quantities(left: str, right: str, expected: str) -> None:
    (one,), (two,) = read(left, "en").quantities, read(right, "en").quantities
    assert compare(one, two) == expected


def test_a_claim_may_round_but_not_sharpen() -> None:
    (coarse,), (fine,) = read("6.7 million", "en").quantities, read("6,683,000", "en").quantities
    assert compare(coarse, fine) == "equal"
    assert compare(fine, coarse) == "different"


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("8 September 2026", "2026-09-08", "equal"),
        ("September 8, 2026", "8 września 2026 r.", "equal"),
        ("3. Mai 2020", "03.05.2020", "equal"),
        ("8 вересня 2026 року", "8 сентября 2026 года", "equal"),
        ("in 2026", "8 September 2026", "equal"),
        ("8 September 2026", "9 September 2026", "different"),
        ("14:30", "2:30 pm", "equal"),
        ("14:30", "15:30", "different"),
        ("Tuesday", "wtorek", "equal"),
        ("14:30", "in 2026", "incomparable"),
    ],
)
def test_moments(left: str, right: str, expected: str) -> None:
    (one,), (two,) = read(left).moments[:1], read(right).moments[:1]
    assert agree(one, two) == expected


@pytest.mark.parametrize(
    "text", ["A1", "ZX-404", "v2.3.1", "https://a.b/5/6", "+48 600 000 000", "x9@y8.com", "COVID-19", "192.168.1.1"]
)
def test_identifiers_are_no_quantities(text: str) -> None:
    assert read(f"see {text} there", "en").quantities == ()


def test_a_range_shares_its_unit() -> None:
    assert [q.unit for q in read("5-10 days", "en").quantities] == ["d", "d"]


@given(st.text(alphabet=st.one_of(st.sampled_from("0123456789.,:-/ %$€kmMayhours"), st.characters()), max_size=120))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read(text: str) -> None:
    found = read(text, "en")
    assert all(0 <= q.start < q.end <= len(text) + 1 for q in found.quantities)
    assert all(compare(q, q) == "equal" for q in found.quantities)
    assert all(0 <= m.start < m.end <= len(text) for m in found.moments)
