"""Quotes: the short way of folding plain text gives what the long way gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_worker.stages.judging import quotes

PIECES = ["A", "b", "`", "'", '"', " ", "\t", "\n", "\x1c", "*", "_", "-", "The Fee", "9.5", "\x00"]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_plain_text_is_folded_as_any_other(text: str) -> None:
    short = quotes.fold(text)
    # A letter beyond ASCII at the end sends the same text the long way.
    long = quotes.fold(text + "ї")

    assert long.text.removesuffix("ї") == short.text
    assert list(long.offsets[:-1]) == list(short.offsets)


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("the fee IS 9.5", ((0, 14),)),
        ("is  9.5\neuros", ((8, 20),)),
        ("fee is 9", ()),
        ("fee ... euros", ((4, 7), (15, 20))),
        ("", ()),
    ],
)
def test_a_quote_is_found_at_its_place(quote: str, found: tuple[tuple[int, int], ...]) -> None:
    assert quotes.find(quote, quotes.fold("The fee is 9.5 euros.")) == found
