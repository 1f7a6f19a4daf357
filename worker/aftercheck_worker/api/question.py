"""From the body of a check to the interaction that is checked: redacted like a trace, memory resolved, ids unique.

The engine reads what the shadow path would read, so that both come to the same verdicts, and nothing that is kept or
sent to a judge holds personal data. Equal values have equal placeholders in answer and evidence.
"""

from __future__ import annotations

import json
import secrets
import time

from pydantic import JsonValue

from aftercheck_schemas import Interaction, Passage
from aftercheck_schemas.vocabulary import EvidenceKind
from aftercheck_worker.api import redacting
from aftercheck_worker.api.contract import KINDS, CheckRequest, Item, ToolLog
from aftercheck_worker.api.original import Original
from aftercheck_worker.api.problem import Problem
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.retrieval import EvidenceSource
from aftercheck_worker.storage import scrub


class Question:
    """One check: `interaction` is what the engine reads, the rest leads back to the caller's own words.

    Args:
        body: the request.
        settings: for redaction.
        memory: resolves `memory_refs`, None when this server knows none.

    Raises:
        Problem: 422 for an unknown kind or two pieces of evidence of one source id.
    """

    def __init__(self, body: CheckRequest, settings: Settings, memory: EvidenceSource | None) -> None:
        self._trace_id = secrets.token_hex(16)
        app = scrub.text(body.agent_id)
        self._redactor = redacting.redactor(settings, app)
        self._slimmer = redacting.slimmer(settings, app, self._trace_id)
        self.answer = self._original(body.output)
        self.sources: dict[str, Original] = {}
        self.unresolved: list[str] = []
        passages = [self._item(item, "context", str(place)) for place, item in enumerate(body.context, start=1)]
        passages += [self._tool(log, f"tool:{place}") for place, log in enumerate(body.tool_logs, start=1)]
        passages += self._memory(body, memory)
        kept = tuple(passage for passage in passages if passage.text.strip())
        if len({passage.source_id for passage in kept}) != len(kept):
            raise Problem(422, "invalid", "two pieces of evidence have one source_id; make them unique or drop them")
        self.interaction = Interaction(
            trace_id=self._trace_id,
            span_id=secrets.token_hex(8),
            app=app,
            origin="check",
            question=self._original(body.input).clean,
            answer=self.answer.clean,
            passages=kept,
            context_source="recorded",
            context_confidence=1.0,
            answered_at=time.time_ns(),
        )

    def _original(self, text: str) -> Original:
        raw = scrub.text(text)
        return Original(raw, *self._redactor.mapped(raw, self._trace_id))

    def _source(self, name: str, text: str) -> str:
        """Redact the text of a source, and keep the way back."""
        found = self._original(text)
        if found.changed:
            self.sources[name] = found
        return found.clean

    def _item(self, item: str | Item, kind: EvidenceKind, name: str) -> Passage:
        if isinstance(item, str):
            return Passage(source_id=name, text=self._source(name, item), kind=kind)
        name = scrub.text(item.source_id or name)
        return Passage(
            source_id=name, text=self._source(name, item.text), kind=_kind(item.kind, kind), trust=item.trust
        )

    def _tool(self, log: str | ToolLog, name: str) -> Passage:
        if isinstance(log, str):
            return Passage(source_id=name, text=self._source(name, log), kind="tool_result")
        name = scrub.text(log.source_id or name)
        given = log.result if log.text is None else log.text
        return Passage(
            source_id=name,
            text=self._source(name, given) if isinstance(given, str) else self._json(given),
            kind=_kind(log.kind, "tool_result"),
            trust=log.trust,
            ok=log.ok,
            name=scrub.text(log.name),
            arguments=self._json(log.arguments),
            at=log.at,
        )

    def _memory(self, body: CheckRequest, memory: EvidenceSource | None) -> list[Passage]:
        found: list[Passage] = []
        for place, ref in enumerate(body.memory_refs, start=1):
            if not isinstance(ref, str):
                found.append(self._item(ref, "memory", f"memory:{place}"))
                continue
            name = scrub.text(ref)
            known = memory.lookup(name) if memory is not None else None
            if known is None:
                self.unresolved.append(name)
            elif all(one.source_id != name for one in found):  # asked for twice is the same evidence, not more of it
                text = self._source(name, known.text)
                found.append(Passage(source_id=name, text=text, kind="memory", trust=known.trust, name=known.name))
        return found

    def _json(self, value: JsonValue) -> str:
        """JSON text of a tool's value: what its keys call a secret is one. Offsets count in this text."""
        if value is None:
            return ""
        clean, _ = self._slimmer.attribute(value)
        return clean if isinstance(clean, str) else json.dumps(clean, ensure_ascii=False)


def _kind(word: str | None, default: EvidenceKind) -> EvidenceKind:
    if word is None:
        return default
    found = KINDS.get(word)
    if found is None:
        raise Problem(422, "invalid", f"unknown evidence kind; known are {', '.join(KINDS)}")
    return found
