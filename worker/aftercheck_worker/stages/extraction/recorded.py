"""Context that the app named itself: `aftercheck.record_context` (context A) and prompt variables (context B)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aftercheck_schemas import Passage
from aftercheck_schemas.vocabulary import EVIDENCE_KIND_ALIASES, EVIDENCE_KINDS
from aftercheck_worker.stages.extraction.decoding import decode, is_document, loads
from aftercheck_worker.stages.extraction.documents import documents_in
from aftercheck_worker.stages.extraction.shape import as_text, first_text, is_dict, is_list

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_schemas import Json, SpanRecord
    from aftercheck_schemas.vocabulary import EvidenceKind

_KEY: Final = "aftercheck.context"
_VARIABLE: Final = "gen_ai.prompt.variable."
_KINDS: Final[dict[str, EvidenceKind]] = {
    **EVIDENCE_KIND_ALIASES,
    **{kind: kind for kind in EVIDENCE_KINDS},
}
_CONTEXT_NAMES: Final = frozenset(
    (
        "context",
        "contexts",
        "context_str",
        "context_string",
        "documents",
        "docs",
        "document",
        "sources",
        "source",
        "passages",
        "passage",
        "chunks",
        "snippets",
        "knowledge",
        "knowledge_base",
        "search_results",
        "retrieved_documents",
        "retrieved_context",
        "references",
        "evidence",
        "kontekst",
        "dokumenty",
        "контекст",
        "документи",
        "документы",
        "kontext",
        "dokumente",
    )
)
_QUESTION_NAMES: Final = (
    "question",
    "query",
    "query_str",
    "user_question",
    "user_input",
    "input",
    "pytanie",
    "frage",
)


def recorded(spans: Sequence[SpanRecord], until: int) -> list[Passage]:
    """Context that the app recorded before the answer ended. The assistant's own words are never evidence."""
    found: list[Passage] = []
    for span in spans:
        raw = span.attributes.get(_KEY)
        if raw is None or (until and span.start > until):
            continue
        value, intact = decode(raw)
        cut = not intact or _KEY in span.truncated
        for item in value if is_list(value) else [value]:
            passage = _passage(item, len(found) + 1, span.end, cut)
            if passage is not None:
                found.append(passage)
    return found


def variables(span: SpanRecord) -> list[Passage]:
    """Prompt variables of the answer span that name a context."""
    return _passages(
        {key[len(_VARIABLE) :]: value for key, value in span.attributes.items() if key.startswith(_VARIABLE)}
    )


def template_variables(span: SpanRecord, above: Sequence[SpanRecord]) -> list[Passage]:
    """OpenInference's variables of the nearest template; coarser than documents that were found in the prompt."""
    for upper in (span, *above):
        value = loads(upper.attributes.get("llm.prompt_template.variables"))
        if is_dict(value):
            return _passages(value)
    return []


def question_variable(span: SpanRecord) -> str:
    """The question among the prompt variables of the span, "" when there is none."""
    attributes = span.attributes
    return first_text(attributes, (f"{_VARIABLE}{name}" for name in _QUESTION_NAMES)).strip()


def _passages(values: dict[str, Json]) -> list[Passage]:
    found: list[Passage] = []
    for name, value in values.items():
        if name.lower() not in _CONTEXT_NAMES:
            continue
        documents = documents_in(value) if is_document(value) or is_list(value) else []
        if documents:
            found.extend(
                Passage(source_id=document.source_id or f"{name}#{number}", text=document.text, name=document.name)
                for number, document in enumerate(documents, 1)
            )
        elif text := as_text(value).strip():
            found.append(Passage(source_id=name, text=text))
    return found


def _passage(item: Json, number: int, at: int, cut: bool) -> Passage | None:
    if isinstance(item, str):
        item = {"text": item}
    if not is_dict(item):
        return None
    text = as_text(item.get("text"))
    kind = _KINDS.get(as_text(item.get("kind")).lower(), "context")
    if not text.strip() or kind == "prior_assistant":
        return None
    trust = item.get("trust", 1.0)
    number_trust = float(trust) if isinstance(trust, (int, float)) and not isinstance(trust, bool) else 1.0
    return Passage(
        source_id=as_text(item.get("source_id")) or f"recorded:{number}",
        text=text,
        kind=kind,
        trust=min(1.0, max(0.0, number_trust)) if number_trust == number_trust else 1.0,
        elided=item.get("elided") is True or cut,
        ok=item.get("ok") is not False,
        name=as_text(item.get("name")),
        at=at,
    )
