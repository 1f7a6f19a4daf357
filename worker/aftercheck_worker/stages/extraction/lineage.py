"""Parents and ancestors of spans inside one trace. Cycles and missing parents are expected."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_schemas import SpanRecord

_MAX_DEPTH = 200


class Lineage:
    """Answers who is above a span."""

    def __init__(self, spans: Sequence[SpanRecord]) -> None:
        self._spans = {span.span_id: span for span in spans}

    def ancestors(self, span: SpanRecord) -> list[SpanRecord]:
        """All spans above `span` that the trace holds, nearest first."""
        found: list[SpanRecord] = []
        seen = {span.span_id}
        parent = span.parent_id
        while parent and parent not in seen and len(found) < _MAX_DEPTH:
            seen.add(parent)
            above = self._spans.get(parent)
            if above is None:
                break
            found.append(above)
            parent = above.parent_id
        return found

    def is_above(self, upper: SpanRecord, lower: SpanRecord) -> bool:
        """True when `upper` is an ancestor of `lower`."""
        return any(span is upper for span in self.ancestors(lower))

    def shared_depths(self, span: SpanRecord, others: Sequence[SpanRecord]) -> list[int]:
        """For each other span how deep the lowest span lies that is above both, -1 when there is none."""
        path = [span, *self.ancestors(span)]
        depths = {above.span_id: len(path) - number for number, above in enumerate(path)}
        return [
            next((depths[one.span_id] for one in (other, *self.ancestors(other)) if one.span_id in depths), -1)
            for other in others
        ]

    def is_top(self, span: SpanRecord) -> bool:
        """True when the trace does not hold the span's parent."""
        return not span.parent_id or span.parent_id not in self._spans or span.parent_id == span.span_id
