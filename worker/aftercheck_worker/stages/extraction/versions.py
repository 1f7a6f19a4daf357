"""Versions of what produced the answer (R2, R43)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from aftercheck_schemas import Versions
from aftercheck_worker.stages.extraction.shape import first_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aftercheck_schemas import Passage, SpanRecord

_NAMED: Final = (
    ("traceloop.prompt.key", "traceloop.prompt.version"),
    ("langfuse.observation.prompt.name", "langfuse.observation.prompt.version"),
    ("llm.prompt_template.name", "llm.prompt_template.version"),
    ("gen_ai.prompt.name", "gen_ai.prompt.version"),
)
"""Attributes of prompt management: name and version."""
_LIMIT: Final = 200
_KEYS: Final = frozenset(
    [f"aftercheck.version.{what}" for what in ("prompt", "retriever", "corpus", "index")]
    + [version for _, version in _NAMED]
)


def versioned(spans: Iterable[SpanRecord]) -> list[SpanRecord]:
    """The spans that record any version: few, so that every answer need not ask every span."""
    return [span for span in spans if not _KEYS.isdisjoint(span.attributes)]


def versions_of(spans: Sequence[SpanRecord], system: str, passages: Iterable[Passage]) -> Versions:
    """Versions that the app recorded, nearest span first.

    Args:
        spans: those that hold versions (`versioned`), nearest to the answer first.
        system: the system prompt; its hash stands in for a prompt version.
        passages: evidence, which is taken out before hashing: retrieved text in a system prompt changes with
            every call and would make a new version of each.
    """
    prompt = _recorded(spans, "prompt") or _managed(spans) if spans else ""
    if not spans:
        return Versions(prompt=prompt_hash(system, passages))
    return Versions(
        prompt=prompt or prompt_hash(system, passages),
        retriever=_recorded(spans, "retriever"),
        corpus=_recorded(spans, "corpus"),
        index=_recorded(spans, "index"),
    )


def prompt_hash(system: str, passages: Iterable[Passage] = ()) -> str:
    """`h:` and the first 12 hex digits of the system prompt's SHA-256, "" without a system prompt."""
    if not system:
        return ""
    for passage in passages:
        if passage.text in system:
            system = system.replace(passage.text, "")
    return "h:" + hashlib.sha256(system.encode("utf-8", "replace")).hexdigest()[:12]


def _recorded(spans: Sequence[SpanRecord], what: str) -> str:
    key = f"aftercheck.version.{what}"
    return next((text[:_LIMIT] for span in spans if (text := first_text(span.attributes, (key,)))), "")


def _managed(spans: Sequence[SpanRecord]) -> str:
    for span in spans:
        for name_key, version_key in _NAMED:
            version = first_text(span.attributes, (version_key,))
            if version:
                name = first_text(span.attributes, (name_key,))
                return (f"{name}@{version}" if name else version)[:_LIMIT]
    return ""
