"""What travels on the Redis stream: one entry is one chunk, one trace's spans in one flush (architecture.md).

An entry has a clear header, readable without decoding anything, and an opaque payload: zlib over JSON with the
keys `resource`, `spans` and `logs`. Field names are short because every entry carries them.

    v version   k kind   app   env   tid trace id   sid session id   org origin   src source
    root 1 when the chunk holds a span without a local parent   done 1 when the trace has no open span left
    drop number of traces or spans lost before   why the reason   size bytes of the JSON   p payload
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from aftercheck_schemas.vocabulary import ORIGINS, Origin

WIRE_VERSION: Final = 1
MAX_JSON_BYTES: Final = 8 * 1024 * 1024
"""Largest JSON document that intake inflates; larger entries are dead letters (`too_large`)."""

EntryKind = Literal["span", "log", "feedback"]
EntrySource = Literal["sdk", "otlp"]


class EntryHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The clear part of a stream entry.

    Attributes:
        version: wire version, 1.
        kind: `span` chunks carry spans (and logs), `log` chunks only log records, `feedback` a user's thumb.
        app: name given to `aftercheck.init`, 1..200 characters.
        environment: deployment environment, "" when unknown.
        trace_id: 32 lower-case hex digits.
        session_id: session of the trace, "" when unknown at the time of the flush.
        origin: production for apps; replay for `aftercheck push`.
        source: `sdk` (our producer) or `otlp` (the receiver); it decides how long intake waits for more.
        root: the chunk holds the trace's parentless or remote-parent root.
        remote_root: the root has a remote parent, so that other processes may add spans.
        local_complete: no span of this trace was open in the process when the chunk was cut.
        dropped: spans of this trace lost in the process so far; > 0 makes the trace incomplete.
        drop_reason: why, "" when nothing was dropped.
        size: bytes of the JSON document before compression, 0 for a header-only entry.
    """

    version: int = WIRE_VERSION
    kind: EntryKind = "span"
    app: str
    environment: str = ""
    trace_id: str
    session_id: str = ""
    origin: Origin = "production"
    source: EntrySource = "sdk"
    root: bool = False
    remote_root: bool = False
    local_complete: bool = False
    dropped: int = 0
    drop_reason: str = ""
    size: int = 0


class WireError(ValueError):
    """A stream entry cannot be read. `reason` is a word of `vocabulary.DeadLetterReason`."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def stream_key(tenant: str = "default") -> str:
    """Name of the tenant's stream. The braces keep all keys of a tenant on one cluster slot."""
    return f"aftercheck:{{{tenant}}}:stream"


def bytes_key(tenant: str = "default") -> str:
    """Name of the counter of payload bytes that wait in the stream; intake subtracts what it removes."""
    return f"aftercheck:{{{tenant}}}:stream:bytes"


def drops_key(tenant: str = "default") -> str:
    """Name of the hash of traces that admission refused: `drops_field` by how many. It only grows."""
    return f"aftercheck:{{{tenant}}}:drops"


def drops_field(app: str, reason: str) -> str:
    """Name of one counter in the hash of refused traces; an app may have any name."""
    return f"{app}\x1f{reason}"


DROPS_LUA: Final = """
if redis.call('HLEN', KEYS[1]) >= 1000 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('HINCRBY', KEYS[1], ARGV[1], ARGV[2])
"""
"""Count refused traces: KEYS hash; ARGV field, number. Bounded, since an app may invent names."""

ADMIT_LUA: Final = """
local max_len, max_bytes, size = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('XLEN', KEYS[1]) >= max_len then return 'full' end
if tonumber(redis.call('GET', KEYS[2]) or '0') + size > max_bytes then return 'full' end
redis.call('INCRBY', KEYS[2], size)
return redis.call('XADD', KEYS[1], '*', unpack(ARGV, 4))
"""
"""Admission: KEYS stream, bytes counter; ARGV max length, max bytes, bytes of this entry, then field/value pairs.

Returns the entry id or the word `full`. Never MAXLEN: that would trim entries nobody has read.
"""

DEFAULT_MAX_ENTRIES: Final = 200_000
DEFAULT_MAX_BYTES: Final = 512 * 1024 * 1024

_BOOLS: Final = {"root": "root", "remote_root": "rem", "local_complete": "done"}


def encode_entry(header: EntryHeader, payload: bytes) -> list[str | bytes]:
    """Return the flat field/value list for XADD; default values are left out."""
    fields: list[str | bytes] = ["v", str(header.version), "app", header.app, "tid", header.trace_id]
    if header.kind != "span":
        fields += ["k", header.kind]
    for value, name in ((header.environment, "env"), (header.session_id, "sid"), (header.drop_reason, "why")):
        if value:
            fields += [name, value.encode("utf-8", "replace")]
    if header.origin != "production":
        fields += ["org", header.origin]
    if header.source != "sdk":
        fields += ["src", header.source]
    for attribute, name in _BOOLS.items():
        if getattr(header, attribute):
            fields += [name, "1"]
    if header.dropped:
        fields += ["drop", str(header.dropped)]
    if header.size:
        fields += ["size", str(header.size)]
    if payload:
        fields += ["p", payload]
    return fields


def decode_entry(fields: dict[bytes, bytes]) -> tuple[EntryHeader, bytes]:
    """Read the fields of one XREADGROUP entry.

    Raises:
        WireError: `version_newer` for a version above ours (the entry stays on the stream), `version_unknown`,
            or `header_invalid`.
    """
    version = _number(fields, b"v", missing=-1)
    if version > WIRE_VERSION:
        raise WireError("version_newer", f"entry has version {version}, this code reads {WIRE_VERSION}")
    if version != WIRE_VERSION:
        raise WireError("version_unknown", f"entry has version {version}, this code reads {WIRE_VERSION}")
    header = EntryHeader(
        kind=_choice(fields, b"k", "span", ("span", "log", "feedback")),  # type: ignore[arg-type]
        app=_text(fields, b"app", 200),
        environment=_text(fields, b"env", 100),
        trace_id=_trace_id(fields),
        session_id=_text(fields, b"sid", 200),
        origin=_choice(fields, b"org", "production", ORIGINS),  # type: ignore[arg-type]
        source=_choice(fields, b"src", "sdk", ("sdk", "otlp")),  # type: ignore[arg-type]
        root=fields.get(b"root") == b"1",
        remote_root=fields.get(b"rem") == b"1",
        local_complete=fields.get(b"done") == b"1",
        dropped=_number(fields, b"drop"),
        drop_reason=_text(fields, b"why", 40),
        size=_number(fields, b"size"),
    )
    if not header.app:
        raise WireError("header_invalid", "app is empty")
    return header, fields.get(b"p", b"")


def _number(fields: dict[bytes, bytes], name: bytes, missing: int = 0) -> int:
    raw = fields.get(name)
    if raw is None:
        return missing
    if not raw.isdigit() or len(raw) > 12:
        raise WireError("header_invalid", f"{name.decode()} is not a number")
    return int(raw)


def _text(fields: dict[bytes, bytes], name: bytes, limit: int) -> str:
    return fields.get(name, b"").decode("utf-8", "replace").replace("\x00", "")[:limit]


def _choice(fields: dict[bytes, bytes], name: bytes, default: str, allowed: tuple[str, ...]) -> str:
    word = fields.get(name, default.encode()).decode("utf-8", "replace")
    if word not in allowed:
        raise WireError("header_invalid", f"{name.decode()} is {word[:20]!r}, not one of {', '.join(allowed)}")
    return word


def _trace_id(fields: dict[bytes, bytes]) -> str:
    word = fields.get(b"tid", b"").decode("utf-8", "replace").lower()
    if len(word) != 32 or any(c not in "0123456789abcdef" for c in word):
        raise WireError("header_invalid", "trace id is not 32 hex digits")
    return word
