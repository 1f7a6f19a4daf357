"""Which calls answered the user: twins are merged, calls that only feed a later call are set aside (O-21)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from aftercheck_worker.stages.extraction.calls import signature
from aftercheck_worker.stages.extraction.shape import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_schemas import SpanRecord
    from aftercheck_worker.stages.extraction.calls import Call
    from aftercheck_worker.stages.extraction.lineage import Lineage

_MIN_QUOTED: Final = 20
"""Shorter texts stand in a prompt by chance."""
_MAX_COMPARED: Final = 60
"""Calls before a call that are compared with it: instrumentations write twins close together."""


def without_twins(calls: Sequence[Call], lineage: Lineage) -> list[Call]:
    """One call where several instrumentations recorded the same one; order of start is kept.

    Twins are a span and a span above it that say the same, or of which one says nothing; or two spans of different
    instrumentations at the same time with the same response id or the same text. The one with the longer input
    wins, then the deeper one; of two that hold nothing the one that the app's instrumentation wrote.
    """
    kept: list[Call] = []
    for call in calls:
        position = next(
            (
                index
                for index in range(len(kept) - 1, max(-1, len(kept) - _MAX_COMPARED), -1)
                if _are_twins(kept[index], call, lineage)
            ),
            None,
        )
        if position is None:
            kept.append(call)
        else:
            kept[position] = _better(kept[position], call, lineage)
    return sorted(kept, key=_start)


def consumed(call: Call, later: Sequence[Call]) -> bool:
    """True when a later call was given the call's text, other than as an earlier turn of the dialogue.

    An assistant turn that a user turn follows was delivered to the user: that is an answer, not a step.
    """
    text = normalised("\n".join(call.texts))
    return bool(text) and any(_takes(text, other) for other in later)


def delivered(call: Call, later: Sequence[Call]) -> bool:
    """True when a later call shows that the user replied to the call's text."""
    text = normalised("\n".join(call.texts))
    return bool(text) and any(
        turn.role == "assistant" and normalised(turn.text) == text and _user_follows(other, index)
        for other in later
        for index, turn in enumerate(other.content.inputs or ())
    )


def _takes(text: str, other: Call) -> bool:
    turns = other.content.inputs or ()
    for index, turn in enumerate(turns):
        if turn.role == "assistant":
            if normalised(turn.text) == text and not _user_follows(other, index):
                return True
        elif len(text) >= _MIN_QUOTED and text in normalised(turn.text):
            return True
    return False


def _user_follows(call: Call, index: int) -> bool:
    turns = call.content.inputs or ()
    return any(turn.role == "user" and turn.text.strip() for turn in turns[index + 1 :])


def _are_twins(first: Call, second: Call, lineage: Lineage) -> bool:
    nested = any(
        lineage.is_above(upper, lower)
        for one in (first.span, *first.twins)
        for upper, lower in ((one, second.span), (second.span, one))
    )
    same = signature(first) == signature(second)
    if nested:
        return same or first.is_empty or second.is_empty
    if not _overlap(first.span, second.span) or first.span.scope == second.span.scope:
        return False
    same_id = _response_id(first.span) == _response_id(second.span) != ""
    return (same_id and (same or first.is_empty or second.is_empty)) or (
        same and first.input_size == second.input_size
    )


def _start(call: Call) -> int:
    return call.span.start


def _overlap(first: SpanRecord, second: SpanRecord) -> bool:
    return first.start < second.end and second.start < first.end


def _response_id(span: SpanRecord) -> str:
    value = span.attributes.get("gen_ai.response.id")
    return value if isinstance(value, str) else ""


def _better(first: Call, second: Call, lineage: Lineage) -> Call:
    def rank(call: Call) -> tuple[bool, bool, int, int]:
        content = call.content
        depth = 0 if call.is_empty else len(lineage.ancestors(call.span))
        return bool(content.outputs), bool(content.inputs), call.input_size, depth

    winner, loser = (second, first) if rank(second) > rank(first) else (first, second)
    return msgspec.structs.replace(winner, twins=(*winner.twins, loser.span, *loser.twins))
