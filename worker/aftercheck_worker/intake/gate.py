"""The one door for bytes from outside: bounded inflate, depth cap, repaired text, then a typed value (S21, F25, F26).

What comes out holds no NaN, no infinity, no lone surrogate, no NUL, and nests at most `MAX_DEPTH` deep. What cannot
come out raises `Rejected` with a word of `vocabulary.DeadLetterReason`. Nothing here recurses in Python.
"""

from __future__ import annotations

import re
import zlib
from typing import Final, TypeVar

import msgspec

from aftercheck_schemas import Chunk
from aftercheck_schemas.vocabulary import DeadLetterReason

MAX_DEPTH: Final = 64
_HEX: Final = frozenset("0123456789abcdef")
_SPAN_ID_DIGITS: Final = 16

_T = TypeVar("_T")


class Rejected(Exception):
    """The bytes are refused. `reason` goes to the dead letter and the counter, `detail` to the reader."""

    def __init__(self, reason: DeadLetterReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason: DeadLetterReason = reason
        self.detail = detail


def inflate(payload: bytes, limit: int) -> bytes:
    """Decompress zlib data, never writing more than `limit` + 1 bytes.

    Raises:
        Rejected: `too_large`, or `invalid_compression` for damaged, cut or trailing data.
    """
    if len(payload) > limit:
        raise Rejected("too_large", f"payload has {len(payload)} bytes compressed, the limit is {limit}")
    machine = zlib.decompressobj()
    try:
        raw = machine.decompress(payload, limit + 1)
    except zlib.error as error:
        raise Rejected("invalid_compression", str(error)) from None
    if len(raw) > limit:
        raise Rejected("too_large", f"payload inflates to more than {limit} bytes")
    if not machine.eof:
        raise Rejected("invalid_compression", "the compressed data ends too early")
    if machine.unused_data:
        raise Rejected("invalid_compression", f"{len(machine.unused_data)} bytes follow the compressed data")
    return raw


_NOT_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")


def depth_exceeds(raw: bytes, limit: int = MAX_DEPTH) -> bool:
    """Tell whether JSON text nests deeper than `limit`. Linear, and all of it in C.

    Few brackets settle it at once. Otherwise strings are cut out (after their escaped quotes), and innermost
    pairs are removed, one level per round, at most `limit` rounds.
    """
    if raw.count(b"[") + raw.count(b"{") <= limit:
        return False
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(raw.split(b'"')[::2]).translate(_ONE_KIND, _NOT_BRACKETS)
    for _ in range(limit):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


_ESCAPE: Final = re.compile(
    rb"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|(?P<nul>u0000)|.)",
    re.DOTALL,
)


def repaired(raw: bytes) -> bytes:
    """Replace escapes of lone surrogates by U+FFFD and remove NUL, escaped or plain. Valid text is untouched."""
    if b"\x00" in raw:
        raw = raw.replace(b"\x00", b"")
    if b"\\ud" not in raw and b"\\uD" not in raw and b"\\u0000" not in raw:
        return raw
    return _ESCAPE.sub(_mended, raw)


def _mended(found: re.Match[bytes]) -> bytes:
    if found["lone"] is not None:
        return b"\\ufffd"
    return b"" if found["nul"] is not None else found[0]


def parse(raw: bytes, decoder: msgspec.json.Decoder[_T]) -> _T:
    """Decode JSON text that somebody else wrote.

    Raises:
        Rejected: `too_deep`, `invalid_json` (NaN, 1e999 and integers of thousands of digits are that, too), or
            `invalid_schema`.
    """
    if depth_exceeds(raw):
        raise Rejected("too_deep", f"JSON nests deeper than {MAX_DEPTH}")
    raw = repaired(raw)
    try:
        return _decoded(raw, decoder)
    except msgspec.ValidationError as error:
        reason: DeadLetterReason = "invalid_json" if "out of range" in str(error) else "invalid_schema"
        raise Rejected(reason, str(error)[:200]) from None
    except msgspec.DecodeError as error:
        raise Rejected("invalid_json", str(error)[:200]) from None
    except RecursionError:
        raise Rejected("too_deep", "the JSON decoder ran out of stack") from None


def _decoded(raw: bytes, decoder: msgspec.json.Decoder[_T]) -> _T:
    try:
        return decoder.decode(raw)
    except msgspec.DecodeError as error:
        if "UTF-8" not in str(error):
            raise
    return decoder.decode(raw.decode("utf-8", "replace").encode("utf-8"))


_CHUNK: Final = msgspec.json.Decoder(Chunk)


def read_chunk(raw: bytes, trace_id: str) -> Chunk:
    """Decode an inflated payload that claims to belong to `trace_id` (32 lower-case hex digits).

    Raises:
        Rejected: as `parse`; `invalid_schema` for a span of another trace or with a malformed id.
    """
    chunk = parse(raw, _CHUNK)
    for span in chunk.spans:
        if span.trace_id != trace_id:
            raise Rejected("invalid_schema", "a span belongs to another trace than the header says")
        if len(span.span_id) != _SPAN_ID_DIGITS or not _HEX.issuperset(span.span_id):
            raise Rejected("invalid_schema", f"span id {span.span_id[:20]!r} is not 16 hex digits")
    if any(log.trace_id != trace_id for log in chunk.logs):
        raise Rejected("invalid_schema", "a log record belongs to another trace than the header says")
    return chunk
