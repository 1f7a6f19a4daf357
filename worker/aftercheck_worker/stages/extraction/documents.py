"""Documents that were retrieved (context C), whatever recorded them, once each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from aftercheck_worker.stages.extraction.decoding import decode, is_cut, is_document, loads
from aftercheck_worker.stages.extraction.indexed import put
from aftercheck_worker.stages.extraction.shape import as_text, first_text, is_dict, is_list, normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aftercheck_schemas import Json, SpanRecord

_FLAT: Final = ("retrieval.documents.", "reranker.output_documents.")
_NAME: Final = re.compile(r"retriev|search|lookup|fetch|rerank|context|knowledge|\bdocs?\b|documents", re.IGNORECASE)
_TEXT_KEYS: Final = ("page_content", "content", "text", "document", "body", "passage", "chunk", "snippet")
_ID_KEYS: Final = ("id", "id_", "doc_id", "document_id", "chunk_id", "node_id", "_id")
_SOURCE_KEYS: Final = ("source", "file_name", "file_path", "filename", "url", "title", "path", "uri")
_HOLDERS: Final = (
    "documents",
    "docs",
    "source_nodes",
    "nodes",
    "results",
    "matches",
    "hits",
    "chunks",
    "passages",
    "contexts",
    "context",
    "outputs",
    "output",
    "data",
    "items",
)
_OUTPUTS: Final = (
    "traceloop.entity.output",
    "langfuse.observation.output",
    "output.value",
    "gen_ai.retrieval.documents",
)
_REPR: Final = re.compile(r"\s*<[A-Z]\w*[( ][^\n]*>\s*$")
"""The name of an object, `<NodeWithScore(...)>`, is not its text."""
_MAX_DEPTH: Final = 8
_MAX_DOCUMENTS: Final = 1_000


class Document(NamedTuple):
    """One retrieved document. `source_id` is "" when the retriever gave no name; `cut` when we cut its span."""

    text: str
    source_id: str = ""
    name: str = ""
    at: int = 0
    cut: bool = False


class Retrieval(NamedTuple):
    """What the trace's retrievers returned. `ran` is True also when they found nothing (R28)."""

    documents: tuple[Document, ...]
    ran: bool


def retrieved(spans: Iterable[SpanRecord]) -> Retrieval:
    """All documents of the trace, de-duplicated by text; a name found on any copy is kept."""
    found: dict[str, Document] = {}
    ran = False
    for span in spans:
        documents, is_retrieval = _of_span(span)
        ran = ran or is_retrieval
        for document in documents[:_MAX_DOCUMENTS]:
            key = normalised(document.text)
            known = found.get(key)
            if not key:
                continue
            if known is None:
                found[key] = document._replace(at=span.end, cut=_is_cut(span))
            elif (not known.source_id and document.source_id) or (not known.name and document.name):
                found[key] = known._replace(
                    source_id=known.source_id or document.source_id, name=known.name or document.name
                )
    return Retrieval(tuple(found.values()), ran)


def documents_in(value: Json, depth: int = 0) -> list[Document]:
    """Read documents from any shape: lists of texts, LangChain documents, double-encoded LlamaIndex nodes."""
    if depth > _MAX_DEPTH or value is None:
        return []
    if isinstance(value, str):
        if is_document(value):
            inner = decode(value).value
            if not isinstance(inner, str):
                return documents_in(inner, depth + 1)
        return [Document(value)] if value.strip() and not _REPR.match(value) else []
    if is_list(value):
        return [document for item in value[:_MAX_DOCUMENTS] for document in documents_in(item, depth + 1)]
    return _in_dict(value, depth) if is_dict(value) else []


def _in_dict(value: dict[str, Json], depth: int) -> list[Document]:
    for key in ("node", "kwargs", "document"):
        inner = value.get(key)
        if is_dict(inner):
            return documents_in(inner, depth + 1)
    text = first_text(value, _TEXT_KEYS)
    if text:
        metadata = loads(value.get("metadata"))
        labels = metadata if is_dict(metadata) else {}
        source = first_text(value, _SOURCE_KEYS) or first_text(labels, _SOURCE_KEYS)
        return [Document(text, first_text(value, _ID_KEYS) or source or first_text(labels, _ID_KEYS), source)]
    for key in _HOLDERS:
        if key in value:
            return documents_in(value[key], depth + 1)
    return []


def _of_span(span: SpanRecord) -> tuple[list[Document], bool]:
    attributes = span.attributes
    if span.events and any(event.name.startswith("db.") for event in span.events):
        return _of_events(span), True
    if _is_flattened(attributes) and (found := _flattened(attributes)):
        return found, True
    if "gen_ai.retrieval.documents" in attributes:
        return documents_in(attributes["gen_ai.retrieval.documents"]), True
    output, kind = _retriever_output(span)
    if kind == "":
        return [], False
    return documents_in(output), True


def _is_cut(span: SpanRecord) -> bool:
    return bool(span.truncated) or any(is_cut(span.attributes.get(key)) for key in _OUTPUTS)


def _retriever_output(span: SpanRecord) -> tuple[Json, str]:
    """The output of a span that retrieves, and how we know; kind "" for any other span."""
    attributes = span.attributes
    if attributes.get("openinference.span.kind") in ("RETRIEVER", "RERANKER"):
        if "output.value" not in attributes:
            return None, ""
        value = decode(attributes["output.value"]).value
        return (value if is_dict(value) or is_list(value) else None), "openinference"
    if attributes.get("langfuse.observation.type") == "retriever":
        return attributes.get("langfuse.observation.output"), "langfuse"
    output = attributes.get("traceloop.entity.output")
    if output is None:
        return None, ""
    if attributes.get("gen_ai.operation.name") in ("retrieval", "vector_db_retrieve"):
        return _listed(output), "semconv"
    if attributes.get("traceloop.span.kind") != "task" or not _NAME.search(_entity_name(span)):
        return None, ""
    value = _listed(output)
    return (value, "traceloop") if value is not None else (None, "")


def _listed(output: Json) -> Json:
    """Documents come as a list or as an object that holds one; plain text is some other task's result."""
    value = decode(output).value
    if is_list(value):
        return value
    if is_dict(value):
        return next((value[key] for key in _HOLDERS if is_list(value.get(key))), None)
    return None


def _entity_name(span: SpanRecord) -> str:
    return as_text(span.attributes.get("traceloop.entity.name")) or span.name


def _of_events(span: SpanRecord) -> list[Document]:
    """Vector databases record one event per hit: `db.query.result` or `db.search.result`."""
    found: list[Document] = []
    for event in span.events:
        if not event.name.startswith("db.") or not event.name.endswith(".result"):
            continue
        prefix = f"{event.name}."
        fields = {key.removeprefix(prefix): value for key, value in event.attributes.items()}
        for key in ("entity", "payload"):
            inner = loads(fields.get(key))
            if is_dict(inner):
                fields = {**inner, **fields}
        if not first_text(fields, _TEXT_KEYS):
            metadata = loads(fields.get("metadata"))
            if is_dict(metadata):
                fields = {**metadata, **fields}
        found.extend(_in_dict(fields, 0) if first_text(fields, _TEXT_KEYS) else ())
    return found


def _is_flattened(attributes: dict[str, Json]) -> bool:
    """The first index may be lost to the attribute limit, but not of a span that says what it is."""
    return (
        attributes.get("openinference.span.kind") in ("RETRIEVER", "RERANKER")
        or "retrieval.documents.0.document.content" in attributes
    )


def _flattened(attributes: dict[str, Json]) -> list[Document]:
    """OpenInference: `retrieval.documents.N.document.{content,id,metadata}`."""
    numbered: dict[int, dict[str, Json]] = {}
    for key, value in attributes.items():
        if key.startswith(_FLAT):
            put(numbered, key.partition("documents.")[2], value)
    return [document for index in sorted(numbered) for document in documents_in(numbered[index])]


def evidence_free(spans: Sequence[SpanRecord]) -> bool:
    """True when no span could hold a retrieved document: the quick answer for plain chat traces."""
    return len(spans) == 1 and not spans[0].events and "openinference.span.kind" not in spans[0].attributes
