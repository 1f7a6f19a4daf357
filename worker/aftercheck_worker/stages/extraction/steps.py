"""Which calls answered the user: a call whose text only feeds the trace itself is a step (O-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from aftercheck_worker.stages.extraction.root import answer_in
from aftercheck_worker.stages.extraction.shape import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_worker.stages.extraction.calls import Call
    from aftercheck_worker.stages.extraction.lineage import Lineage

_MIN_QUOTED: Final = 20
"""Shorter texts stand in a prompt by chance."""
_MAX_LATER: Final = 20
"""A text is consumed by one of the next calls, so that long traces cost no square of their length."""


class _Digest(NamedTuple):
    """A call's texts, normalised once: its answer, what it was given, and where the last user turn stands."""

    said: str
    given: tuple[tuple[str, str], ...]
    last_user: int


def steps(calls: Sequence[Call], lineage: Lineage) -> set[str]:
    """Span ids of the calls whose text was not meant for the user.

    A text that the root returned, or that a user turn follows in a later prompt, was delivered: that is an answer.
    Else a text that one of the next calls was given is a step, and so is a text beside another one that the root
    returned.
    """
    if len(calls) < 2:
        return set()
    digests = [_digest(call) for call in calls]
    returned = _returned(calls, lineage)
    said = {digest.said for digest in digests if digest.said}
    found: set[str] = set()
    for index, (call, digest) in enumerate(zip(calls, digests, strict=True)):
        if not digest.said or call.wants_tools or digest.said in returned[index]:
            continue
        later = digests[index + 1 : index + 1 + _MAX_LATER]
        if any(_is_delivered(digest.said, other) for other in later):
            continue
        if returned[index] in said or any(_is_given(digest.said, other) for other in later):
            found.add(call.span.span_id)
    return found


def _digest(call: Call) -> _Digest:
    turns = call.content.inputs or ()
    given = tuple((turn.role, normalised(turn.text)) for turn in turns)
    users = [index for index, (role, text) in enumerate(given) if role == "user" and text]
    return _Digest(normalised("\n".join(call.texts)), given, users[-1] if users else -1)


def _returned(calls: Sequence[Call], lineage: Lineage) -> list[str]:
    """For each call what the topmost span above it returned, "" for none."""
    known: dict[str, str] = {}
    found: list[str] = []
    for call in calls:
        above = lineage.ancestors(call.span)
        if above and above[-1].span_id not in known:
            known[above[-1].span_id] = normalised(answer_in(above[-1]))
        found.append(known[above[-1].span_id] if above else "")
    return found


def _is_delivered(said: str, later: _Digest) -> bool:
    return any(
        role == "assistant" and text == said and index < later.last_user
        for index, (role, text) in enumerate(later.given)
    )


def _is_given(said: str, later: _Digest) -> bool:
    return any(
        text == said if role == "assistant" else len(said) >= _MIN_QUOTED and said in text
        for role, text in later.given
    )
