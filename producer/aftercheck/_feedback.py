"""A user's feedback on an answer, by trace id (R6); goes the same way as spans."""

from __future__ import annotations

import time
from typing import Literal

from aftercheck import _init
from aftercheck._buffer import Feedback
from aftercheck._guard import never_raises, warn_once

MAX_COMMENT_CHARS = 4_000
_HEX = frozenset("0123456789abcdef")


@never_raises(False)
def feedback(
    trace_id: str,
    value: Literal["up", "down"] | float,
    *,
    span_id: str | None = None,
    comment: str | None = None,
    user: str | None = None,
) -> bool:
    """Send a thumb or a score for an answer; a thumbs-down forces a check of an answer that was not sampled.

    Args:
        trace_id: 32 hex digits, from `current_trace_id()` when the answer was given.
        value: `up`, `down`, or a number on a scale of your own.
        span_id: 16 hex digits, when a trace holds several answers.
        comment: the user's words; personal data is replaced by placeholders, cut at 4,000 characters.
        user: anything that names the user; only a keyed hash of it leaves the process. The same user's later
            feedback on the same answer replaces the earlier one.

    Returns:
        Whether the feedback was taken; False (with one warning) for bad arguments, before `init`, or when full.
    """
    number = _hex(trace_id, 32)
    if number is None or (span_id is not None and _hex(span_id, 16) is None):
        warn_once("aftercheck.feedback needs a trace id of 32 hex digits (current_trace_id()); nothing was sent")
        return False
    if value not in ("up", "down") and (isinstance(value, (bool, str)) or not abs(float(value)) < 1e9):
        warn_once("aftercheck.feedback needs 'up', 'down' or a finite number as value; nothing was sent")
        return False
    payload: dict[str, object] = {
        "trace_id": f"{number:032x}",
        "value": value if isinstance(value, str) else float(value),
        "at": time.time_ns(),
    }
    if span_id is not None:
        payload["span_id"] = span_id.lower()
    if comment:
        payload["comment"] = str(comment)[: 2 * MAX_COMMENT_CHARS]
    if user:
        payload["user_hash"] = user_hash(str(user))
    return _init.put_feedback(Feedback(number, payload))


def user_hash(user: str) -> str:
    """Keyed hash of a user's name, 32 hex digits; equal in all processes that share the redaction key."""
    from aftercheck_schemas import redaction  # at the first feedback, so that the import stays light (R1)

    return redaction.user_hash(_init.redaction_key(), user)


def _hex(word: object, length: int) -> int | None:
    if not isinstance(word, str) or len(word) != length or not _HEX.issuperset(word.lower()):
        return None
    return int(word, 16) or None
