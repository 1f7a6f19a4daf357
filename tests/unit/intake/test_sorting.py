"""Entries are sorted by their headers alone."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import EntryHeader, encode_entry
from aftercheck_schemas.vocabulary import DEAD_LETTER_REASONS
from aftercheck_worker.intake.rates import Rate, Rates
from aftercheck_worker.intake.readiness import Patience
from aftercheck_worker.intake.record import pack, unpack
from aftercheck_worker.intake.sorting import Bundle, Sorter
from aftercheck_worker.intake.stream import Entry

KEPT, LEFT = "f" * 32, "0" * 32


def sort(*entries: Entry, rate: float = 0.5) -> Bundle:
    rates = Rates(Rate(rate))
    rates.replace({}, 0.0)
    return Sorter(rates, Patience(), limit=1000).sort(entries)


def entry(header: EntryHeader, payload: bytes = b"x", deliveries: int = 1) -> Entry:
    raw = [item.encode() if isinstance(item, str) else item for item in encode_entry(header, payload)]
    return Entry(b"5-1", dict(zip(raw[::2], raw[1::2], strict=True)), deliveries)


def refusal(bundle: Bundle) -> str:
    (found,) = bundle.letters
    assert not bundle.moves
    assert found[2].argument == found[1].reason
    return found[1].reason


def test_the_draw_decides_between_hold_and_cold() -> None:
    bundle = sort(entry(EntryHeader(app="a", trace_id=KEPT)), entry(EntryHeader(app="a", trace_id=LEFT)))

    assert [(move.action, move.size, move.argument) for move in bundle.moves] == [
        ("hold", 1, 3000),
        ("cold", 1, 3000),
    ]


def test_chunks_by_otlp_wait_longer() -> None:
    (move,) = sort(entry(EntryHeader(app="a", trace_id=KEPT, source="otlp"))).moves

    assert move.argument == 15_000


@pytest.mark.req("F25")
def test_refusals() -> None:
    header = EntryHeader(app="a", trace_id=KEPT)

    assert refusal(sort(entry(header, bytes(1001)))) == "too_large"
    assert refusal(sort(entry(EntryHeader(app="a", trace_id=KEPT, size=1001)))) == "too_large"
    assert refusal(sort(entry(header, deliveries=4))) == "poison"
    assert refusal(sort(Entry(b"1-1", {b"v": b"0"}))) == "version_unknown"
    assert refusal(sort(Entry(b"1-1", {b"v": b"1", b"app": b"a", b"tid": b"no"}))) == "header_invalid"
    assert (
        refusal(sort(entry(EntryHeader(app="a", trace_id=KEPT, kind="feedback"), b"no zlib")))
        == "invalid_compression"
    )


@pytest.mark.req("F30")
def test_a_later_version_is_left_alone_however_often_it_came() -> None:
    bundle = sort(Entry(b"1-1", {b"v": b"2"}, 9))

    assert (len(bundle.newer), bundle.letters, bundle.moves) == (1, [], [])


@pytest.mark.req("P4")
def test_a_header_that_reports_a_loss_is_counted_by_reason() -> None:
    header = EntryHeader(app="a", trace_id=KEPT, dropped=3, drop_reason="buffer_full")
    odd = EntryHeader(app="a", trace_id=KEPT, dropped=3, drop_reason="what\x1fever")

    assert [move.dropped for move in sort(entry(header, b""), entry(odd, b"")).moves] == [
        "buffer_full",
        "internal_error",
    ]


@pytest.mark.req("R6")
@pytest.mark.parametrize(("value", "expected"), [("down", -1.0), ("up", 1.0), (0.25, 0.25)])
def test_feedback(value: object, expected: float) -> None:
    payload = zlib.compress(json.dumps({"value": value, "comment": "c"}).encode())
    ((_, word, move),) = sort(entry(EntryHeader(app="a", trace_id=KEPT, kind="feedback"), payload)).words

    assert (word.value, word.trace_id, move.action) == (expected, KEPT, "feedback")


@given(st.dictionaries(st.binary(max_size=6), st.binary(max_size=40), max_size=8))
@pytest.mark.req("F25")
def test_garbage_never_raises(fields: dict[bytes, bytes]) -> None:
    bundle = sort(Entry(b"1-1", fields), Entry(b"1-2", {**fields, b"v": b"1"}))

    assert len(bundle.letters) + len(bundle.newer) + len(bundle.moves) + len(bundle.words) == 2
    assert all(letter.reason in DEAD_LETTER_REASONS for _, letter, _ in bundle.letters)


def test_a_record_survives_packing() -> None:
    made = entry(EntryHeader(app="a", trace_id=KEPT, session_id="s"), b"payload")
    record = unpack(pack(made.id, made.fields, b"12345678"))

    assert (record.digest, record.entry_id, record.payload) == (b"12345678", "5-1", b"payload")
    assert record.header.session_id == "s"
