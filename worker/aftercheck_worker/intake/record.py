"""A stream entry as intake keeps it until its trace is ready: undecoded, with its entry id."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from aftercheck_schemas import EntryHeader, decode_entry

DIGEST_BYTES: Final = 8


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk that waits.

    Attributes:
        digest: 8 bytes over the payload. The same chunk sent twice has the same digest whatever its entry id,
            so that a producer's retry is a duplicate and not a second chunk (F27).
        entry_id: id of the stream entry, `ms-sequence`.
        header: the clear part of the entry.
        payload: the opaque part.
        fields: the entry as it came, for a dead letter.
    """

    digest: bytes
    entry_id: str
    header: EntryHeader
    payload: bytes
    fields: dict[bytes, bytes]


class _Body(msgspec.Struct, frozen=True, array_like=True):
    entry_id: bytes
    fields: dict[bytes, bytes]


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Body)


def digest_of(entry_id: bytes, payload: bytes) -> bytes:
    """Return the digest of a payload; of the entry id for a header-only entry."""
    return hashlib.blake2b(payload or entry_id, digest_size=DIGEST_BYTES).digest()


def pack(entry_id: bytes, fields: dict[bytes, bytes], digest: bytes) -> bytes:
    """Return the digest followed by the entry."""
    return digest + _ENCODER.encode(_Body(entry_id, fields))


def unpack(stored: bytes) -> Record:
    """Read what `pack` wrote.

    Raises:
        msgspec.DecodeError: the bytes were not written by `pack`.
        WireError: the header cannot be read (it could when it was packed).
    """
    body = _DECODER.decode(memoryview(stored)[DIGEST_BYTES:])
    header, payload = decode_entry(body.fields)
    return Record(
        digest=stored[:DIGEST_BYTES],
        entry_id=body.entry_id.decode("ascii", "replace"),
        header=header,
        payload=payload,
        fields=body.fields,
    )
