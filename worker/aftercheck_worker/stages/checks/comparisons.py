"""Comparisons turned around: "A is faster than B" against a line that says "B is faster than A".

Every word of the claim stands in such a line, so neither likeness nor a small model sees the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from aftercheck_worker.stages.checks.alignment import Alignment, Subject
from aftercheck_worker.stages.checks.finding import Finding
from aftercheck_worker.text.content import content, denies
from aftercheck_worker.text.lexicon import Language
from aftercheck_worker.text.normalise import flat
from aftercheck_worker.text.tokens import words

NEAR: Final = 8
_THAN: Final = re.compile(r"\b(?:than|als|niż|ніж|чем)\b", re.IGNORECASE)
_CLAUSE: Final = re.compile(r"[,;:.](?:\s|$)")
_DEGREES: Final = frozenset(
    ("more", "less", "fewer", "mehr", "weniger", "bardziej", "mniej", "більш", "менш", "более", "менее")
)


class Comparison(NamedTuple):
    """Terms on both sides of "than", the word that compares, and the degree in front of it."""

    left: frozenset[str]
    right: frozenset[str]
    word: str
    degrees: frozenset[str]


def check(subject: Subject, alignment: Alignment) -> Iterator[Finding]:
    """Yield a conviction when a line compares the same two things the other way round and none agrees."""
    mine = comparison(subject.own, subject.language)
    if mine is None or subject.negated or subject.claim.type == "code":
        return
    turned = None
    for _, line in alignment.candidates(subject)[:NEAR]:
        theirs = comparison(flat(line.text), subject.language)
        if theirs is None or mine.word != theirs.word or mine.degrees != theirs.degrees:
            continue
        about = mine.left - theirs.left
        if not about and mine.right <= theirs.right:
            return  # said just so
        if about and about <= theirs.right and mine.right <= theirs.left and not denies(line.text, subject.language):
            turned = turned or line
    if turned is not None:
        yield Finding(
            kind="polarity",
            effect="convict",
            status="contradicted",
            reason="comparison_reversed",
            evidence=(alignment.cite(turned, 1.0),),
        )


def comparison(text: str, language: Language) -> Comparison | None:
    """Read the first comparison of a text; None when there is none, or a side of it is empty."""
    found = _THAN.search(text)
    if found is None:
        return None
    left, right = _CLAUSE.split(text[: found.start()])[-1], _CLAUSE.split(text[found.end() :])[0]
    before = [word.low for word in words(left)]
    sides = content(left, language), content(right, language)
    if not before or not all(sides):
        return None
    return Comparison(*sides, before[-1], frozenset(before) & _DEGREES)
