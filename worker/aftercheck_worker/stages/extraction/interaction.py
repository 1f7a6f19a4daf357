"""Put together one interaction from a call and what the trace says about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from aftercheck_schemas import Interaction
from aftercheck_schemas.sessions import user_of
from aftercheck_worker.stages.extraction import documents, model, tool_results
from aftercheck_worker.stages.extraction.context import Context, context_of
from aftercheck_worker.stages.extraction.documents import Retrieval, retrieved
from aftercheck_worker.stages.extraction.prompt import Prompt
from aftercheck_worker.stages.extraction.question import question_of
from aftercheck_worker.stages.extraction.reasons import input_reason
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


_TURN: Final = "aftercheck.session.turn"
_MAX_OWNERS: Final = 100
"""More answers in one trace share all evidence: telling them apart would cost their number times the spans."""


class Scene:
    """What the answers of a trace share. Read once, and only when an answer needs it."""

    def __init__(self, trace: Trace, lineage: Lineage, answers: Sequence[SpanRecord]) -> None:
        self.trace = trace
        self.lineage = lineage
        self._owners = self._owned(answers) if 1 < len(answers) <= _MAX_OWNERS else {}
        self.versioned = versioned(trace.spans)
        self._retrieval: Retrieval | None = None

    def around(self, span: SpanRecord) -> Sequence[SpanRecord]:
        """The trace without the spans that are nearer to another answer.

        A batch of questions under one root keeps its evidence apart; steps of one agent share theirs.
        """
        if not self._owners:
            return self.trace.spans
        return [
            other
            for other in self.trace.spans
            if (owners := self._owners.get(other.span_id)) is None or span.span_id in owners
        ]

    def retrieval(self, around: Sequence[SpanRecord]) -> Retrieval:
        """Documents of the retrievers among these spans."""
        if around is not self.trace.spans:
            return retrieved(around)
        if self._retrieval is None:
            nothing = documents.evidence_free(around)
            self._retrieval = Retrieval((), ran=False) if nothing else retrieved(around)
        return self._retrieval

    def _owned(self, answers: Sequence[SpanRecord]) -> dict[str, set[str]]:
        """For every span that could hold evidence the answers that are nearest to it."""
        owned: dict[str, set[str]] = {}
        for span in self.trace.spans:
            if "gen_ai.output.messages" in span.attributes and "aftercheck.context" not in span.attributes:
                continue
            depths = self.lineage.shared_depths(span, answers)
            nearest = max(depths)
            if min(depths) < nearest:
                pairs = zip(depths, answers, strict=True)
                owned[span.span_id] = {answer.span_id for depth, answer in pairs if depth == nearest}
        return owned


def interaction_of(call: Call, number: int, reason: NotAssessableReason | None, scene: Scene) -> Interaction:
    """One call as an interaction.

    Args:
        call: the model call.
        number: 1-based index of the call inside its trace.
        reason: why the call is no answer, None for an answer.
        scene: what the trace holds.
    """
    span, trace = call.span, scene.trace
    recorders = (span, *call.twins)
    above = scene.lineage.ancestors(span)
    prompt = Prompt(call.content.inputs or ())
    around = scene.around(span)
    tools = tool_results.tool_spans(around)
    context = context_of(span, above, around, prompt, scene.retrieval(around), tools)
    asked_above = question_in([*reversed(above), span] if call.content.inputs is None else reversed(above))
    question = question_of(prompt, question_variable(span), asked_above, context.passages)
    answer = call.texts[0] if call.texts else ""
    rendered = _rendered(around)
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
        user_id=user_of(trace.spans),
        turn=_recorded_turn(span, around) or prompt.turn,
        call_index=number,
        context_source=context.source,
        context_confidence=context.confidence * (0.5 if cut else 1.0),
        answered_at=span.end,
        complete=trace.complete,
        truncated=trace.truncated or cut,
        not_assessable=reason or input_reason(call, prompt, context),
    )


def _rendered(spans: Sequence[SpanRecord]) -> str | None:
    """What the user was shown, when the app recorded it; the last record wins."""
    shown = (as_text(span.attributes.get("aftercheck.output")) for span in reversed(spans))
    return next((text for text in shown if text), None)


def _recorded_turn(span: SpanRecord, spans: Sequence[SpanRecord]) -> int:
    """Turn inside the session as the app recorded it, 0 for none."""
    own = as_count(span.attributes.get(_TURN))
    return own or max((as_count(other.attributes.get(_TURN)) for other in spans), default=0)


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
