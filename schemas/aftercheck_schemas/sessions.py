"""The attributes that name a trace's session and user. One list for app, receiver and intake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aftercheck_schemas.trace import SpanRecord

SESSION_KEYS: Final = (
    "aftercheck.session.id",
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "ai.telemetry.metadata.sessionId",
)
"""Strongest first: what the app told us, then the convention for dialogues, the one for visits, then the vendors'."""

USER_KEYS: Final = ("user.id", "traceloop.association.properties.user_id", "langfuse.user.id", "enduser.id")
"""Strongest first."""

STABLE_SCOPE: Final = "stable"
STABLE_KEYS: Final = frozenset((*SESSION_KEYS, *USER_KEYS))
"""Attributes whose placeholders are equal in all traces: their scope is `STABLE_SCOPE`, not the trace id."""


def session_of(spans: Iterable[SpanRecord]) -> str:
    """Session id recorded on any span, at most 200 characters, "" when there is none.

    The strongest key wins, then the first span.
    """
    best, rank = "", len(SESSION_KEYS)
    for span in spans:
        attributes = span.attributes
        for position in range(rank):
            value = attributes.get(SESSION_KEYS[position])
            if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
                best, rank = str(value)[:200], position
                break
        if rank == 0:
            break
    return best


def user_of(spans: Iterable[SpanRecord]) -> str:
    """User id recorded on any span, at most 200 characters, "" when there is none; the first span wins."""
    for span in spans:
        for key in USER_KEYS:
            value = span.attributes.get(key)
            if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
                return str(value)[:200]
    return ""
