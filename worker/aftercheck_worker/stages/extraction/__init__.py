"""From a trace to the answers in it: one `Interaction` per answer span (notes on capture, section 4). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aftercheck_worker.stages.extraction import calls, fallback, logs
from aftercheck_worker.stages.extraction.interaction import Scene, interaction_of
from aftercheck_worker.stages.extraction.lineage import Lineage
from aftercheck_worker.stages.extraction.reasons import output_reason
from aftercheck_worker.stages.extraction.steps import steps
from aftercheck_worker.stages.extraction.twins import without_twins

if TYPE_CHECKING:
    from aftercheck_schemas import Interaction, LogRecord, Trace
    from aftercheck_schemas.vocabulary import NotAssessableReason
    from aftercheck_worker.stages.extraction.calls import Call

__all__ = ["extract"]


def extract(trace: Trace) -> tuple[Interaction, ...]:
    """Find every answer in a trace, in the order in which the calls began.

    Each call of a language model yields one interaction. An answer can be judged; any other call says in
    `not_assessable` why not: `tool_calls_only` for the steps of an agent, `not_an_answer` for a text that only
    feeds a later call. Twins that several instrumentations recorded of one call are merged. Embeddings,
    re-ranking, agents, tools and retrievers yield nothing. A trace without any model call yields its root's
    input and output when both are text.

    Returns:
        Possibly empty. Never raises, whatever the attributes hold.
    """
    records = logs.by_span(trace.logs) if trace.logs else {}
    lineage = Lineage(trace.spans)
    found = [calls.read(span, records.get(span.span_id, ())) for span in trace.spans if calls.is_call(span)]
    found += _without_span(trace, records)
    if not found:
        root = fallback.root_call(trace, lineage)
        found = [] if root is None else [root]
    elif len(found) > 1:
        found = without_twins(found, lineage)
    if not found:
        return ()
    found = fallback.filled(found, lineage)
    aside = steps(found, lineage)
    reasons: list[NotAssessableReason | None] = [
        output_reason(call) or ("not_an_answer" if call.span.span_id in aside else None) for call in found
    ]
    answered = [call.span for call, reason in zip(found, reasons, strict=True) if reason is None]
    scene = Scene(trace, lineage, answered)
    return tuple(
        interaction_of(call, number, reason, scene)
        for number, (call, reason) in enumerate(zip(found, reasons, strict=True), 1)
    )


def _without_span(trace: Trace, records: dict[str, list[LogRecord]]) -> list[Call]:
    """Log records of spans that never came: openai-v2 records no span for an abandoned stream."""
    known = {span.span_id for span in trace.spans}
    orphans = [span_id for span_id in records if span_id not in known]
    read = [fallback.call_of_logs(trace, span_id, records[span_id]) for span_id in orphans]
    return [call for call in read if call is not None]
