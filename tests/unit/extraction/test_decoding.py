from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_worker.stages.extraction.decoding import decode, loads

documents = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), documents, min_size=1, max_size=3) | st.lists(documents, max_size=3))
def test_whole_document_is_read_as_json_reads_it(document: object) -> None:
    for ascii_only in (True, False):
        assert decode(json.dumps(document, ensure_ascii=ascii_only)) == (document, True)


@given(st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": st.text()}), min_size=1), st.data())
def test_cut_document_never_raises_and_is_never_whole(document: list[dict[str, str]], data: st.DataObject) -> None:
    text = json.dumps(document)
    cut = data.draw(st.integers(2, len(text) - 1))
    value, intact = decode(text[:cut])
    assert not intact
    assert value is None or isinstance(value, list)


@pytest.mark.req("R41")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('[{"role": "user", "content": "Refund within 30 da', [{"role": "user", "content": "Refund within 30 da"}]),
        ('[{"role": "user", "content": "a"}, {"role": "ass', [{"role": "user", "content": "a"}, {"role": "ass"}]),
        ('{"a": "Za\\u017c\\u00f', {"a": "Zaż"}),
        ('{"a": "smile \\ud83d', {"a": "smile "}),
        ('{"a": 1, "b', {"a": 1}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ('{"a": "x", "b": tru', {"a": "x"}),
    ],
)
def test_head_of_a_cut_document_is_kept(text: str, value: object) -> None:
    assert decode(text) == (value, False)


@pytest.mark.parametrize("text", ["plain", "", "[1] see page 4", "{name} is a placeholder", "[note] read me", "7"])
def test_text_that_is_no_json_stays_text(text: str) -> None:
    assert decode(text) == (text, True)
    assert loads(text) == text


def test_lone_surrogates_are_replaced() -> None:
    assert decode(r'{"a": "\ud800", "\udfff": 1}') == ({"a": "?", "?": 1}, True)


def test_values_that_are_no_text_stay() -> None:
    for value in (None, 3, True, [1], {"a": 1}):
        assert decode(value) == (value, True)
