"""Cuts inside a sentence: clauses that stand for themselves, items of an enumeration, a leading frame."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from aftercheck_worker.stages.claims.reader import WORD, Draft, Reader, finite_verbs
from aftercheck_worker.text.lexicon import Category, pattern
from aftercheck_worker.text.sentences import Span, trim

_ENUMERATION: Final = re.compile(
    r"\s*(?:,|;|\band\b|\boder\b|\bund\b|\boraz\b|\bor\b|(?<=\s)(?:i|и|і|й|та|или|або|lub)(?=\s))\s*"
)


def cut_at(span: Span, reader: Reader, category: Category) -> Iterator[Span]:
    """Pieces of a span between the matches of a category, which are left out."""
    start = span.start
    text = reader.flat
    for found in pattern(reader.language, category).finditer(text, span.start, span.end):
        piece = trim(text, start, found.start())
        if piece.end > piece.start:
            yield piece
        start = found.end()
    last = trim(text, start, span.end)
    if last.end > last.start:
        yield last


def without_prefix(span: Span, reader: Reader) -> Span:
    """Leave "Based on the context," out of the claim."""
    start = span.start
    for language in dict.fromkeys((reader.language, "en")):
        found = pattern(language, "meta_prefix").match(reader.flat[start : span.end])
        if found is not None and start + found.end() < span.end:
            start += found.end()
    return trim(reader.answer, start, span.end)


def clauses(span: Span, reader: Reader) -> Iterator[Span]:
    """Cut at a coordinator where both sides are clauses: each has a subject and a finite verb."""
    verbs = finite_verbs(reader.language)
    start = span.start
    for found in pattern(reader.language, "coordinator").finditer(reader.flat, span.start, span.end):
        left = reader.flat[start : found.start()]
        right = reader.flat[found.end() : span.end]
        if is_clause(left, verbs) and is_clause(right, verbs) and '"' not in left[-1:]:
            if left.count('"') % 2 or left.count("(") != left.count(")"):
                continue
            yield trim(reader.answer, start, found.start())
            start = found.end()
    yield trim(reader.answer, start, span.end)


def is_clause(text: str, verbs: frozenset[str]) -> bool:
    """Three words or more with a finite verb behind one to six others."""
    words = [word.lower() for word in WORD.findall(text[:300])]
    at = next((index for index, word in enumerate(words) if word in verbs), -1)
    return 1 <= at <= 6 and len(words) >= 3


def enumerated(span: Span, reader: Reader) -> Iterator[Draft]:
    """Split `X includes A, B and C` into one claim per item; the head is the premise of the later ones."""
    head = pattern(reader.language, "includes").search(reader.flat, span.start, span.end)
    items = _items(reader, head.end(), span.end) if head is not None else []
    if head is None or len(items) < 3 or head.end() - span.start < 4:
        yield Draft(span.start, span.end)
        return
    premise = reader.answer[span.start : head.end()].strip()
    yield Draft(span.start, items[0].end)
    for item in items[1:]:
        yield Draft(item.start, item.end, premise=premise)


def _items(reader: Reader, start: int, end: int) -> list[Span]:
    text = reader.flat[start:end]
    if "," not in text or '"' in text or "(" in text or len(text) > 300:
        return []
    spans: list[Span] = []
    position = 0
    for found in _ENUMERATION.finditer(text):
        spans.append(trim(text, position, found.start()))
        position = found.end()
    spans.append(trim(text, position, len(text)))
    spans = [Span(start + s.start, start + s.end) for s in spans if s.end > s.start]
    words = [len(WORD.findall(reader.flat[s.start : s.end])) for s in spans]
    return spans if words and max(words) <= 4 and min(words) >= 1 else []
