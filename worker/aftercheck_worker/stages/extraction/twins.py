"""Calls that several instrumentations recorded, each once (O-18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from aftercheck_worker.stages.extraction.calls import signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_schemas import SpanRecord
    from aftercheck_worker.stages.extraction.calls import Call
    from aftercheck_worker.stages.extraction.lineage import Lineage

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
