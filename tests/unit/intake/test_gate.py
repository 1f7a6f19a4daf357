"""The door for bytes from outside: whatever comes in, a clean value or a named reason comes out."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas.vocabulary import DEAD_LETTER_REASONS
from aftercheck_worker.intake.gate import (
    MAX_DEPTH,
    Rejected,
    depth_exceeds,
    inflate,
    parse,
    read_chunk,
    repaired,
)

TRACE = "0af7651916cd43dd8448eb211c80319c"
ANYTHING = msgspec.json.Decoder(object)
LIMIT = 1_000_000

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=40,
)


def chunk(text: bytes) -> bytes:
    """JSON of a chunk whose resource holds `text`."""
    return b'{"resource":{"a":' + text + b"}}"


def reason(raw: bytes) -> str:
    with pytest.raises(Rejected) as caught:
        read_chunk(raw, TRACE)
    assert caught.value.reason in DEAD_LETTER_REASONS
    return caught.value.reason


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((depth(item) for item in cast("dict[str, object]", value).values()), default=0)
    if isinstance(value, list):
        return 1 + max((depth(item) for item in cast("list[object]", value)), default=0)
    return 0


@given(value=values, ascii_only=st.booleans(), limit=st.integers(1, 6))
@pytest.mark.req("S21")
def test_depth_is_exact(value: object, ascii_only: bool, limit: int) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace")

    assert depth_exceeds(raw, limit) == (depth(value) > limit)


@given(value=values)
def test_valid_json_is_untouched(value: object) -> None:
    raw = msgspec.json.encode(value)

    if b"\\u0000" not in raw:
        assert repaired(raw) == raw


@given(raw=st.binary(max_size=200))
@pytest.mark.req("F25")
def test_garbage_has_a_known_reason(raw: bytes) -> None:
    found = ""
    try:
        parse(raw, ANYTHING)
    except Rejected as refusal:
        found = refusal.reason
    assert found in ("", *DEAD_LETTER_REASONS)


@pytest.mark.req("F25", "S21")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"NaN", "invalid_json"),
        (b"Infinity", "invalid_json"),
        (b"1e999", "invalid_json"),
        (b"9" * 5000, "invalid_json"),
        (b"[" * 1000 + b"]" * 1000, "too_deep"),
        (b"[" * 200_000 + b"]" * 200_000, "too_deep"),
        (b"[" * 200_000, "too_deep"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "too_deep"),
        (b"[1,", "invalid_json"),
    ],
)
def test_refused(text: bytes, expected: str) -> None:
    assert reason(chunk(text)) == expected


@pytest.mark.req("F25")
def test_wrong_types_empty_and_foreign_spans_are_refused() -> None:
    assert reason(b"") == "invalid_json"
    assert reason(b"[]") == "invalid_schema"
    assert reason(b'{"spans":[{"trace_id":1}]}') == "invalid_schema"
    assert reason(b'{"spans":[{"trace_id":"%s","span_id":"%s"}]}' % (b"0" * 32, b"1" * 16)) == "invalid_schema"
    assert reason(b'{"spans":[{"trace_id":"%s","span_id":"x"}]}' % TRACE.encode()) == "invalid_schema"
    assert reason(b'{"logs":[{"trace_id":"%s"}]}' % (b"0" * 32)) == "invalid_schema"


@pytest.mark.req("F25", "S21")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb'"\ud800x"', "\ufffdx"),
        (rb'"\udc00\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\uD83D\u0041"', "\ufffdA"),
        (rb'"\\ud800"', r"\ud800"),
        (rb'"\\\ud800"', "\\\ufffd"),
        (rb'"a\u0000b"', "ab"),
        (rb'"\\u0000"', r"\u0000"),
        (b'"a\x00b"', "ab"),
        (b'"\xed\xa0\x80"', "\ufffd\ufffd\ufffd"),
        (b'"caf\xe9"', "caf\ufffd"),
        (b"[" * 60 + b"]" * 60, None),
        (b"12345678901234567890123", 12345678901234567890123),
    ],
)
def test_repaired(text: bytes, expected: object) -> None:
    found = read_chunk(chunk(text), TRACE).resource["a"]

    assert expected is None or found == expected


def test_the_last_of_duplicate_keys_counts() -> None:
    assert read_chunk(b'{"resource":{"a":1,"a":2}}', TRACE).resource == {"a": 2}


def test_brackets_in_strings_are_no_depth() -> None:
    text = json.dumps('[{"' * 500).encode()

    assert read_chunk(chunk(text), TRACE).resource["a"] == '[{"' * 500


@pytest.mark.req("F26")
def test_a_zip_bomb_is_never_inflated() -> None:
    bomb = zlib.compress(bytes(200_000_000), 9)

    tracemalloc.start()
    try:
        with pytest.raises(Rejected, match="too_large"):
            inflate(bomb, LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 4 * LIMIT


@pytest.mark.req("F25")
@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", "invalid_compression"),
        (b"not zlib", "invalid_compression"),
        (zlib.compress(b"abc" * 100)[:-6], "invalid_compression"),
        (zlib.compress(b"abc") + b"more", "invalid_compression"),
        (bytes(LIMIT + 1), "too_large"),
    ],
)
def test_bad_compression(payload: bytes, expected: str) -> None:
    with pytest.raises(Rejected) as caught:
        inflate(payload, LIMIT)

    assert caught.value.reason == expected


def test_exactly_the_limit_passes() -> None:
    assert len(inflate(zlib.compress(bytes(LIMIT)), LIMIT)) == LIMIT
    assert MAX_DEPTH == 64
