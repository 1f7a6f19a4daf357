"""Text for Postgres: no NUL, no lone surrogate, the same length."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_worker.storage import scrub

pytestmark = pytest.mark.req("S21", "F25")

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_any_text_can_be_stored_and_offsets_stay(value: str) -> None:
    clean = scrub.text(value)

    clean.encode()
    assert "\0" not in clean
    assert len(clean) == len(value)
    assert all(new in (old, scrub.REPLACEMENT) for old, new in zip(value, clean, strict=True))


def test_good_text_is_not_copied() -> None:
    for value in ("plain", "żółć", "𝔘"):
        assert scrub.text(value) is value


@given(
    st.recursive(
        ANY_TEXT | st.integers() | st.none(),
        lambda inner: st.dictionaries(ANY_TEXT, inner) | st.lists(inner) | st.tuples(inner),
    )
)
def test_any_value_becomes_clean_json(value: object) -> None:
    document = scrub.encode(value)

    msgspec.json.decode(document)
    assert b"\\u0000" not in document.replace(b"\\\\", b"")


def test_an_escaped_backslash_is_no_nul() -> None:
    body = msgspec.json.encode({"a": "\\u0000"})
    assert msgspec.json.decode(scrub.json(body)) == {"a": "\\u0000"}
    assert scrub.json(b'{"a":1}') == b'{"a":1}'
