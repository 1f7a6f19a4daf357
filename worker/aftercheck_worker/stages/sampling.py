"""Which traces are evaluated: deterministic, nested, the same in every process and after every retry (R4, P9).

The rule is OpenTelemetry's consistent probability sampling: the low 56 bits R of the trace id are compared with a
threshold T = (1 - p) * 2^56, and the trace is kept when R >= T. A higher rate keeps everything that a lower one
keeps. In session mode R comes from a hash of the session id, so that whole sessions are kept (R30). Pure.
"""

from __future__ import annotations

import hashlib
from typing import Final, Literal

import msgspec

BITS: Final = 56
FULL: Final = 1 << BITS

Mode = Literal["trace", "session"]


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided for one trace, fixed when the trace is ready.

    Attributes:
        keep: evaluate the trace.
        weight: 1 / rate for a kept trace, so that weighted sums estimate all traffic (R53); 1 otherwise.
        rate: 0..1, the rate that was in force.
        version: version of that rate, 0 for the default from the settings.
    """

    keep: bool
    weight: float = 1.0
    rate: float = 1.0
    version: int = 0


def threshold(rate: float) -> int:
    """Smallest draw that is kept at `rate` (0..1): 0 keeps all, 2^56 keeps none.

    Raises:
        ValueError: the rate is outside [0, 1] or not a number.
    """
    if not 0.0 <= rate <= 1.0:
        raise ValueError(f"sampling rate is {rate}, it must lie in [0, 1]")
    return FULL - round(rate * FULL)


def draw_trace(trace_id: str) -> int:
    """Return the low 56 bits of a trace id of 32 hex digits, 0..2^56-1."""
    return int(trace_id[-14:], 16)


def draw_session(session_id: str) -> int:
    """Return 56 bits of a hash of the session id, 0..2^56-1."""
    digest = hashlib.blake2b(session_id.encode("utf-8", "replace"), digest_size=BITS // 8).digest()
    return int.from_bytes(digest, "big")


def draw(trace_id: str, session_id: str, mode: Mode) -> int:
    """Return the draw that decides. A trace without a session is drawn by its own id in both modes."""
    return draw_session(session_id) if mode == "session" and session_id else draw_trace(trace_id)


def decide(trace_id: str, session_id: str, *, rate: float, mode: Mode = "trace", version: int = 0) -> Decision:
    """Decide for one trace.

    Raises:
        ValueError: the rate is outside [0, 1].
    """
    keep = draw(trace_id, session_id, mode) >= threshold(rate)
    return Decision(keep=keep, weight=1.0 / rate if keep else 1.0, rate=rate, version=version)
