"""What the model saw, and how sure we are: the precedence of notes on capture, section 4, A to G.

Faithfulness is judged against everything that was in the prompt, so a stronger source does not hide a weaker one:
passages of several sources stand beside each other, each text once. `context_source` names the strongest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from aftercheck_schemas import Passage
from aftercheck_worker.stages.extraction import seen, tool_results
from aftercheck_worker.stages.extraction.instructions import facts_in
from aftercheck_worker.stages.extraction.recorded import recorded, template_variables, variables
from aftercheck_worker.stages.extraction.shape import normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aftercheck_schemas import SpanRecord
    from aftercheck_schemas.interaction import ContextSource
    from aftercheck_worker.stages.extraction.documents import Retrieval
    from aftercheck_worker.stages.extraction.prompt import Prompt
    from aftercheck_worker.stages.extraction.tool_results import ToolSpan

_CONFIDENCE: Final[dict[ContextSource, float]] = {
    "recorded": 1.0,
    "prompt_variable": 0.95,
    "retrieval_in_prompt": 0.95,
    "tool_results": 0.9,
    "document_parts": 0.9,
    "prompt_block": 0.8,
    "system_prompt": 0.4,
    "retrieval_only": 0.2,
    "none": 0.0,
}


class Context(NamedTuple):
    """Evidence of one answer.

    Attributes:
        passages: what the model saw, each text once, earlier user statements last.
        retrieved: documents that are not in the prompt.
        source: the strongest source of `passages`.
        confidence: 0..1.
        expected: False when no evidence, empty retrieval or place for context belongs to the answer. Documents
            that were retrieved but stand nowhere in the prompt belong to something else.
    """

    passages: tuple[Passage, ...]
    retrieved: tuple[Passage, ...]
    source: ContextSource
    confidence: float
    expected: bool


def context_of(
    span: SpanRecord,
    above: Sequence[SpanRecord],
    trace: Sequence[SpanRecord],
    prompt: Prompt,
    found: Retrieval,
    tools: Sequence[ToolSpan],
) -> Context:
    """Collect the evidence of the answer in `span`.

    Args:
        span: the answer span.
        above: its ancestors, nearest first.
        trace: all spans.
        prompt: the answer's prompt, taken apart.
        found: documents of the trace's retrievers.
        tools: tool executions of the trace.
    """
    pool = _Pool()
    pool.add("recorded", recorded(trace, span.end))
    visible, absent = seen.split(found.documents, prompt)
    pool.add("retrieval_in_prompt", visible)
    pool.add("tool_results", tool_results.in_prompt(prompt.turns, tools))
    pool.add("tool_results", _earlier(tools, span, prompt))
    pool.add("document_parts", prompt.documents)
    pool.add_rest("prompt_variable", variables(span) or ([] if visible else template_variables(span, above)))
    pool.add_rest("prompt_block", prompt.blocks)
    if not pool.sources and prompt.system and (facts := facts_in(prompt.system)):
        pool.add("system_prompt", [Passage(source_id="system", text=facts)])
    evidence = pool.passages
    source = pool.strongest() or ("prompt_block" if prompt.has_place else "retrieval_only" if found.ran else "none")
    confidence = _CONFIDENCE[source] if evidence or source == "retrieval_only" else 0.0
    if prompt.unreadable:
        evidence = [msgspec.structs.replace(passage, elided=True) for passage in evidence]
        confidence *= 0.5
    return Context(
        tuple(_unique([*evidence, *prompt.statements])),
        tuple(_unique(absent)),
        source,
        confidence,
        expected=bool(evidence) or prompt.has_place or (found.ran and not found.documents),
    )


def _earlier(tools: Sequence[ToolSpan], span: SpanRecord, prompt: Prompt) -> list[Passage]:
    """Tools that ended before the answer began. In the prompt they may be named, joined or escaped differently."""
    asked = {part.id for turn in prompt.turns for part in turn.parts if part.kind == "tool_result" and part.id}
    return [
        passage
        for tool in tools
        if tool.call_id not in asked and (not tool.end or tool.end <= max(span.start, 1))
        for passage in tool_results.passages(tool)
    ]


class _Pool:
    """Passages in the order of their strength, each text once."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []
        self.sources: set[ContextSource] = set()
        self._texts: set[str] = set()

    def add(self, source: ContextSource, passages: Iterable[Passage]) -> None:
        """Add passages whose text is not there yet; a copy of a known text still counts for the source."""
        for passage in passages:
            key = normalised(passage.text)
            if not key:
                continue
            self.sources.add(source)
            if key not in self._texts:
                self._texts.add(key)
                self.passages.append(passage)

    def add_rest(self, source: ContextSource, passages: Iterable[Passage]) -> None:
        """Add only what the finer passages above do not say already: a block often is their concatenation."""
        for passage in passages:
            inside = [known.text for known in self.passages if known.text.strip() in passage.text]
            rest = seen.without(passage.text, inside) if inside else passage.text
            if not inside and (key := normalised(passage.text)) and any(key in text for text in self._texts):
                rest = ""
            if inside and not rest and source == "prompt_variable":
                self.sources.add(source)
            if rest:
                self.add(source, [msgspec.structs.replace(passage, text=rest)])

    def strongest(self) -> ContextSource | None:
        """The first source of the precedence that gave anything."""
        return next((source for source in _ORDER if source in self.sources), None)


_ORDER: Final[tuple[ContextSource, ...]] = (
    "recorded",
    "prompt_variable",
    "retrieval_in_prompt",
    "tool_results",
    "document_parts",
    "prompt_block",
    "system_prompt",
)


def _unique(passages: Sequence[Passage]) -> list[Passage]:
    """Source ids are unique inside an interaction; a repeated one gets a number."""
    seen_ids: set[str] = set()
    unique: list[Passage] = []
    for passage in passages:
        name, number = passage.source_id, 2
        while name in seen_ids:
            name = f"{passage.source_id}~{number}"
            number += 1
        seen_ids.add(name)
        unique.append(passage if name == passage.source_id else msgspec.structs.replace(passage, source_id=name))
    return unique
