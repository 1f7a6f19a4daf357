"""Feedback entries of the stream: read, and what they ask for."""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec

from aftercheck_schemas import EntryHeader
from aftercheck_worker.intake.gate import Rejected, inflate, parse
from aftercheck_worker.storage.feedback import Feedback

MAX_BYTES: Final = 256 * 1024
_SIGNS: Final = {"up": 1.0, "down": -1.0}


class _Payload(msgspec.Struct, frozen=True):
    value: Literal["up", "down"] | float
    span_id: str = ""
    user_hash: str = ""
    comment: str | None = None
    at: int = 0


_DECODER: Final = msgspec.json.Decoder(_Payload)


def read(header: EntryHeader, payload: bytes) -> Feedback:
    """Decode the payload of a feedback entry.

    Raises:
        Rejected: as `gate.inflate` and `gate.parse`; `invalid_schema` for a value that is not finite.
    """
    body = parse(inflate(payload, MAX_BYTES), _DECODER)
    value = _SIGNS[body.value] if isinstance(body.value, str) else body.value
    if not math.isfinite(value):
        raise Rejected("invalid_schema", "the feedback's value is not finite")
    return Feedback(
        trace_id=header.trace_id,
        span_id=body.span_id[:16],
        user_hash=body.user_hash[:64],
        kind="thumb" if isinstance(body.value, str) else "score",
        value=value,
        comment=None if body.comment is None else body.comment[:4000],
        app=header.app,
        at=body.at,
    )
