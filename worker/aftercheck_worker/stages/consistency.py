"""Does an answer contradict itself, or what the assistant said before (R16)? Deterministic, no model.

It never changes faithfulness by itself: a self-contradiction flags the answer, and the later of two conflicting
numbers inside one answer is contradicted when the earlier one is supported.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from aftercheck_schemas.evaluation import Claim
from aftercheck_schemas.interaction import Message
from aftercheck_worker.text.content import alike, content, denies, names
from aftercheck_worker.text.language import detect
from aftercheck_worker.text.lexicon import Language
from aftercheck_worker.text.normalise import flat, plain
from aftercheck_worker.text.numerals import Quantity, compare, read
from aftercheck_worker.text.sentences import sentences

SAME: Final = 0.75
MAX_PARTNERS: Final = 30
MAX_HISTORY: Final = 400
_OWN: Final = re.compile(
    r"(?<!\w)(?:its|their|his|her|ihr\w{0,2}|sein\w{0,2}|jego|jej|ich|його|її|їх|его|её|их)\s+(?:[\w-]+\s+)?$",
    re.IGNORECASE,
)


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Two statements that cannot both hold. `earlier` is a claim id, or `history:N` (1-based)."""

    earlier: str
    later: str
    reason: str


class _Statement(msgspec.Struct, frozen=True):
    """A statement made ready for comparison."""

    id: str
    text: str
    language: Language
    terms: frozenset[str]
    names: frozenset[str]
    quantities: tuple[Quantity, ...]
    negated: bool


def within(claims: Sequence[Claim]) -> tuple[Conflict, ...]:
    """Return the conflicts between verifiable claims of one answer; each claim meets at most 30 earlier ones."""
    language = detect(" ".join(claim.text for claim in claims[:50]))
    ready = [
        _ready(c.id, f"{c.premise} {c.text}" if c.premise else c.text, language)
        for c in claims
        if c.verifiable and c.type != "code"
    ]
    return tuple(_conflicts(ready, ready))


def against_history(claims: Sequence[Claim], history: Sequence[Message]) -> tuple[Conflict, ...]:
    """Return the conflicts between claims and the assistant's earlier turns (their first 400 sentences)."""
    language = detect(" ".join(claim.text for claim in claims[:50]))
    earlier: list[_Statement] = []
    for number, message in enumerate(history, 1):
        if message.role != "assistant":
            continue
        spans = sentences(message.text, language=language)[: MAX_HISTORY - len(earlier)]
        earlier += [_ready(f"history:{number}", message.text[span.start : span.end], language) for span in spans]
    later = [_ready(c.id, c.text, language) for c in claims if c.verifiable and c.type != "code"]
    return tuple(_conflicts(earlier, later, before=False))


def _ready(name: str, text: str, language: Language) -> _Statement:
    shown = flat(plain(text))
    return _Statement(
        name,
        shown,
        language,
        content(shown, language),
        names(shown, language),
        read(shown, language).quantities,
        denies(shown, language),
    )


def _conflicts(
    earlier: Sequence[_Statement], later: Sequence[_Statement], *, before: bool = True
) -> Iterator[Conflict]:
    """Compare statements that share a rare enough term or a unit; linear through an index of terms."""
    index: dict[str, list[int]] = defaultdict(list)
    if not before:
        for place, statement in enumerate(earlier):
            _add(index, statement, place)
    for place, statement in enumerate(later):
        partners = sorted({p for key in _keys(statement) for p in index[key][-MAX_PARTNERS:]}, reverse=True)[
            :MAX_PARTNERS
        ]
        for partner in partners:
            reason = _reason(earlier[partner], statement)
            if reason:
                yield Conflict(earlier=earlier[partner].id, later=statement.id, reason=reason)
                break
        if before:
            _add(index, statement, place)


def _add(index: dict[str, list[int]], statement: _Statement, place: int) -> None:
    for key in _keys(statement):
        index[key].append(place)


def _keys(statement: _Statement) -> list[str]:
    return [*sorted(statement.terms)[:40], *{f"unit:{q.dimension}" for q in statement.quantities if q.unit}]


def _reason(one: _Statement, two: _Statement) -> str:
    if _other_subject(one, two):
        return ""
    for quantity in two.quantities:
        if not quantity.unit:
            continue
        rivals = [q for q in one.quantities if q.dimension == quantity.dimension]
        if len(rivals) == 1 and compare(quantity, rivals[0]) == "different":
            if _OWN.search(two.text[max(0, quantity.start - 30) : quantity.start]) and len(two.quantities) == 1:
                return "other_value_of_the_same"
            if _same(one, two):
                return "other_value_of_the_same"
    if one.negated != two.negated and _same(one, two, strict=True):
        return "denied_and_said"
    return ""


def _same(one: _Statement, two: _Statement, *, strict: bool = False) -> bool:
    shared = one.terms & two.terms
    smaller, larger = sorted((len(one.terms), len(two.terms)))
    return len(shared) >= 2 and len(shared) >= SAME * (larger if strict else smaller)


def _other_subject(one: _Statement, two: _Statement) -> bool:
    mine, theirs = one.names - two.names, two.names - one.names
    return bool(mine and theirs) or any(alike(a, b) for a in mine for b in theirs)
