"""An empty tool result is evidence of absence: "no orders were found for ZX-404" over `rows: 0`.

Every identifier or name of the claim must stand in the one result that came back empty, and that result must have
brought nothing else: an empty answer about one thing says nothing about another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from aftercheck_worker.stages.checks.alignment import Alignment, Subject
from aftercheck_worker.stages.checks.finding import Finding
from aftercheck_worker.text.content import content
from aftercheck_worker.text.normalise import flat

SHARED: Final = 0.8
"""Share of the claim's terms, identifiers apart, that the call and its result must name."""
_THINGS: Final = r"(?:rows?|results?|records?|match(?:es)?|hits?|items?|documents?|entries|count|total)"
_EMPTY: Final = re.compile(
    rf"\b{_THINGS}\"?\s*[:=]\s*(?:0\b(?![.,]\d)|\[\s*\]|none\b|null\b)|(?<![\d.,])0 {_THINGS}\b"
    rf"|\bno (?:matching )?{_THINGS}\b|(?:->|=>)\s*(?:\[\s*\]|none\b|null\b|\(empty\))|^\s*(?:\[\s*\]|\{{\s*\}})\s*$",
    re.IGNORECASE,
)
_FULL: Final = re.compile(
    rf"\b{_THINGS}\"?\s*[:=]\s*(?:[1-9]|\[\s*[^\s\]])|(?<![\d.,])[1-9]\d* {_THINGS}\b", re.IGNORECASE
)
_ABSENT: Final = re.compile(
    r"\bno\b[^.;]{0,60}\b(?:found|exists?|returned|matched|listed|recorded|available|in)\b"
    r"|\bthere (?:is|are|was|were) (?:no|not any)\b"
    r"|\b(?:does|do|did|was|were|is|are|could) ?n(?:o|')t (?:exist|found|find|be found|listed|return)"
    r"|\b(?:not|nothing) (?:be )?found\b|\bnie (?:ma|znaleziono|istnieje)\b|\bbrak\b"
    r"|\bне (?:знайдено|існує|найден\w*|существует)\b|\b(?:немає|нема|нет)\b"
    r"|\b(?:kein(?:e|en|er)?|nicht|nichts)\b[^.;]{0,60}\b(?:gefunden|vorhanden|existiert)\b"
    r"|\bgibt (?:es )?keine?n?\b",
    re.IGNORECASE,
)
_IDENTIFIER: Final = re.compile(r"(?<![\w-])(?=[\w-]*\d)[\w]+(?:-[\w]+)*(?![\w-])")
_RETURNED: Final = re.compile(
    r"found|data|exist|retur|match|list|recor|resul|syste|znale|istni|знайд|існу|найде|сущес|gefun|vorha",
    re.IGNORECASE,
)
"""Stems of the looking up itself: they need not stand in the call."""


def check(subject: Subject, alignment: Alignment) -> Iterator[Finding]:
    """Yield support for a claim of absence about exactly what a tool looked up in vain."""
    if subject.claim.type == "code" or not _ABSENT.search(subject.own):
        return
    named = {found.lower() for found in _IDENTIFIER.findall(subject.own)} | subject.names
    if not named:
        return
    wanted = {term for term in subject.terms if not _RETURNED.match(term) and not any(term in name for name in named)}
    for source in alignment.sources:
        if source.kind != "tool_result" or not _EMPTY.search(source.text) or _FULL.search(source.text):
            continue
        text = flat(source.text)
        shared = wanted & content(text, subject.language)
        if all(name in text.lower() for name in named) and len(shared) >= SHARED * len(wanted):
            span = source.span(0, len(source.text), 1.0)
            yield Finding(kind="value", effect="support", reason="empty_result", evidence=(span,), strength=0.8)
            return
