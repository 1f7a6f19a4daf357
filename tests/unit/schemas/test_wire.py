"""The stream entry: what goes in comes out, and whatever else comes in has a named reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import EntryHeader, WireError, decode_entry, encode_entry, stream_key
from aftercheck_schemas.vocabulary import DEAD_LETTER_REASONS, ORIGINS
from aftercheck_schemas.wire import WIRE_VERSION, bytes_key

TRACE = "0af7651916cd43dd8448eb211c80319c"


def as_read(fields: list[str | bytes]) -> dict[bytes, bytes]:
    """Return the flat list as redis-py hands it back."""
    raw = [item.encode() if isinstance(item, str) else item for item in fields]
    return dict(zip(raw[::2], raw[1::2], strict=True))


headers = st.builds(
    EntryHeader,
    kind=st.sampled_from(["span", "log", "feedback"]),
    app=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), min_size=1, max_size=200),
    environment=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=100),
    trace_id=st.text("0123456789abcdef", min_size=32, max_size=32),
    session_id=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=200),
    origin=st.sampled_from(ORIGINS),
    source=st.sampled_from(["sdk", "otlp"]),
    root=st.booleans(),
    remote_root=st.booleans(),
    local_complete=st.booleans(),
    dropped=st.integers(0, 10**9),
    size=st.integers(0, 10**9),
)


@given(header=headers, payload=st.binary(max_size=64))
def test_round_trip(header: EntryHeader, payload: bytes) -> None:
    assert decode_entry(as_read(encode_entry(header, payload))) == (header, payload)


def test_defaults_cost_no_bytes() -> None:
    fields = encode_entry(EntryHeader(app="a", trace_id=TRACE), b"")

    assert fields == ["v", str(WIRE_VERSION), "app", "a", "tid", TRACE]


@given(st.dictionaries(st.binary(max_size=8), st.binary(max_size=40)))
@pytest.mark.req("F25")
def test_garbage_is_refused_with_a_known_reason(fields: dict[bytes, bytes]) -> None:
    with pytest.raises(WireError) as caught:
        decode_entry(fields)

    assert caught.value.reason in DEAD_LETTER_REASONS


@pytest.mark.req("F30")
@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (b"2", "version_newer"),
        (b"0", "version_unknown"),
        (b"-1", "header_invalid"),
        (b"9" * 13, "header_invalid"),
    ],
)
def test_versions(version: bytes, reason: str) -> None:
    fields = as_read(encode_entry(EntryHeader(app="a", trace_id=TRACE), b"p")) | {b"v": version}

    with pytest.raises(WireError) as caught:
        decode_entry(fields)

    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"tid", b"short"),
        (b"tid", b"g" * 32),
        (b"tid", "０".encode() * 32),
        (b"app", b""),
        (b"app", b"\x00"),
        (b"k", b"metrics"),
        (b"org", b"PRODUCTION"),
        (b"size", b"1e9"),
        (b"drop", b"-1"),
    ],
)
def test_wrong_header_fields(name: bytes, value: bytes) -> None:
    fields = as_read(encode_entry(EntryHeader(app="a", trace_id=TRACE), b"p")) | {name: value}

    with pytest.raises(WireError) as caught:
        decode_entry(fields)

    assert caught.value.reason == "header_invalid"


def test_text_is_made_storable() -> None:
    fields = as_read(encode_entry(EntryHeader(app="a", trace_id=TRACE), b"")) | {
        b"sid": b"s\xff\x00\xed\xa0\x80" + b"x" * 300
    }

    header, _ = decode_entry(fields)

    assert "\x00" not in header.session_id
    assert len(header.session_id) == 200
    header.session_id.encode()


def test_lone_surrogates_never_break_the_sender() -> None:
    fields = encode_entry(EntryHeader(app="a", trace_id=TRACE, session_id="s\ud800"), b"")

    assert b"s?" in fields


def test_keys_of_one_tenant_share_a_cluster_slot() -> None:
    assert stream_key("t1") == "aftercheck:{t1}:stream"
    assert bytes_key("t1").startswith("aftercheck:{t1}:")
