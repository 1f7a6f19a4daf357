"""Put together one interaction from a call and what the trace says about it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from aftercheck_schemas import Interaction
from aftercheck_worker.stages.extraction import documents, model, tool_results
from aftercheck_worker.stages.extraction.context import Context, context_of
from aftercheck_worker.stages.extraction.documents import Retrieval, retrieved
from aftercheck_worker.stages.extraction.prompt import Prompt
from aftercheck_worker.stages.extraction.question import question_of
from aftercheck_worker.stages.extraction.reasons import input_reason, output_reason
from aftercheck_worker.stages.extraction.recorded import question_variable
from aftercheck_worker.stages.extraction.root import question_in
from aftercheck_worker.stages.extraction.shape import as_count, as_text
from aftercheck_worker.stages.extraction.versions import versioned, versions_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_schemas import Passage, SpanRecord, Trace
    from aftercheck_schemas.vocabulary import NotAssessableReason
    from aftercheck_worker.stages.extraction.calls import Call
    from aftercheck_worker.stages.extraction.lineage import Lineage
    from aftercheck_worker.stages.extraction.tool_results import ToolSpan


class Scene:
    """What all answers of a trace share. Read once, and only when an answer needs it."""

    def __init__(self, trace: Trace, lineage: Lineage) -> None:
        self.trace = trace
        self.lineage = lineage

    @cached_property
    def retrieval(self) -> Retrieval:
        """Documents of the trace's retrievers."""
        if documents.evidence_free(self.trace.spans):
            return Retrieval((), ran=False)
        return retrieved(self.trace.spans)

    @cached_property
    def tools(self) -> list[ToolSpan]:
        """Executions of tools."""
        return tool_results.tool_spans(self.trace.spans)

    @cached_property
    def versioned(self) -> list[SpanRecord]:
        """Spans that record versions."""
        return versioned(self.trace.spans)

    @cached_property
    def rendered(self) -> str | None:
        """What the user was shown, when the app recorded it."""
        shown = [as_text(span.attributes.get("aftercheck.output")) for span in self.trace.spans]
        return next((text for text in reversed(shown) if text), None)

    @cached_property
    def session_turn(self) -> int:
        """Turn inside the session as the app recorded it, 0 for none."""
        return max((as_count(span.attributes.get("aftercheck.session.turn")) for span in self.trace.spans), default=0)


def interaction_of(call: Call, number: int, step: NotAssessableReason | None, scene: Scene) -> Interaction:
    """One call as an interaction.

    Args:
        call: the model call.
        number: 1-based index of the call inside its trace.
        step: `not_an_answer` for a call whose text only feeds the trace itself.
        scene: what the trace holds.
    """
    span, trace = call.span, scene.trace
    recorders = (span, *call.twins)
    above = scene.lineage.ancestors(span)
    prompt = Prompt(call.content.inputs or ())
    reason = output_reason(call) or step
    context = context_of(span, above, trace.spans, prompt, scene.retrieval, scene.tools)
    asked_above = question_in([*reversed(above), span] if call.content.inputs is None else reversed(above))
    question = question_of(prompt, question_variable(span), asked_above, context.passages)
    answer = call.texts[0] if call.texts else ""
    rendered = scene.rendered
    cut = not (call.content.input_intact and call.content.output_intact)
    return Interaction(
        trace_id=trace.trace_id,
        span_id=span.span_id,
        app=trace.app,
        environment=trace.environment,
        origin=trace.origin,
        question=question,
        answer=answer,
        alternatives=call.texts[1:],
        rendered=rendered if rendered and rendered != answer else None,
        passages=_marked(context, span),
        retrieved=context.retrieved,
        history=prompt.history,
        model=model.model_of(recorders),
        provider=model.provider_of(recorders),
        parameters=model.parameters_of(span),
        context_tokens=model.tokens_of(recorders),
        versions=versions_of(
            _nearest(scene.versioned, (*recorders, *above)), prompt.system, [*prompt.blocks, *context.passages]
        ),
        session_id=trace.session_id,
        turn=scene.session_turn or prompt.turn,
        call_index=number,
        context_source=context.source,
        context_confidence=context.confidence * (0.5 if cut else 1.0),
        answered_at=span.end,
        complete=trace.complete,
        truncated=trace.truncated or cut,
        not_assessable=reason or input_reason(call, prompt, context),
    )


def _nearest(spans: list[SpanRecord], near: Sequence[SpanRecord]) -> list[SpanRecord]:
    """The spans, those of `near` first in its order."""
    if not spans:
        return spans
    ids = {span.span_id for span in spans}
    first = [span for span in near if span.span_id in ids]
    done = {span.span_id for span in first}
    return first + [span for span in spans if span.span_id not in done]


def _marked(context: Context, span: SpanRecord) -> tuple[Passage, ...]:
    """Where a part of the input was cut or dropped, silence of the rest proves nothing."""
    if not span.truncated and not span.dropped_attributes:
        return context.passages
    return tuple(msgspec.structs.replace(passage, elided=True) for passage in context.passages)
