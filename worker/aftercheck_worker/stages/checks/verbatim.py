"""Claims that repeat a line word for word but for a negation or a figure: the change is the point."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from aftercheck_worker.stages.checks.alignment import Alignment, Line, Subject
from aftercheck_worker.stages.checks.finding import Finding, Kind
from aftercheck_worker.text.content import content
from aftercheck_worker.text.lexicon import Language, load
from aftercheck_worker.text.normalise import flat
from aftercheck_worker.text.numerals import read
from aftercheck_worker.text.tokens import Token, words

REPEATED: Final = 0.8
_NO_NUMBER: Final = re.compile(r"\bno\.?(?= \d)|^\s*(?:no|nein|nie|ні|нет)\s*,", re.IGNORECASE)
NEAR: Final = 4
MAX_WORDS: Final = 90
MAX_CHANGE: Final = 3
MIN_WORDS: Final = 4


def check(subject: Subject, alignment: Alignment) -> Iterator[Finding]:
    """Yield one finding when every line that the claim repeats differs from it in a negation or a figure."""
    mine = words(_numbered(subject.own))
    if subject.claim.type == "code" or not MIN_WORDS <= len(mine) <= MAX_WORDS:
        return
    found: list[tuple[float, str, Line]] = []
    for _, line in alignment.candidates(subject)[:NEAR]:
        share, reason = _compare(subject, mine, _numbered(flat(line.text)))
        if share >= REPEATED:
            found.append((share, reason, line))
    if not found or not all(reason for _, reason, _ in found):
        return
    share, reason, line = max(found, key=lambda row: row[0])
    kind: Kind = "polarity" if reason == "negation_flip" else "number"
    yield Finding(
        kind=kind, effect="convict", status="contradicted", reason=reason, evidence=(alignment.cite(line, share),)
    )


def _numbered(text: str) -> str:
    """Blank the "no" of "no 7" and an answer's "No,": they deny nothing in the sentence; offsets stay."""
    return _NO_NUMBER.sub(lambda found: " " * len(found.group()), text)


def _compare(subject: Subject, mine: Sequence[Token], text: str) -> tuple[float, str]:
    """Return the share of the claim's words that the line repeats in order, and what was changed."""
    theirs = words(text)[:MAX_WORDS]
    matcher = SequenceMatcher(None, [w.low for w in mine], [w.low for w in theirs], autojunk=False)
    share = sum(block.size for block in matcher.get_matching_blocks()) / len(mine)
    if share < REPEATED:
        return share, ""
    codes = matcher.get_opcodes()
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    spanned = theirs[blocks[0].b : blocks[-1].b + blocks[-1].size]
    uneven = sum(_denial(w, subject.language) for w in mine) != sum(_denial(w, subject.language) for w in spanned)
    for place, (operation, a, b, c, d) in enumerate(codes):
        outer = place in (0, len(codes) - 1) and operation == "insert"  # what stands around the repeated part
        if operation == "equal" or outer or b - a > MAX_CHANGE or d - c > MAX_CHANGE:
            continue
        if uneven and _denial_added(mine[a:b], theirs[c:d], subject.language):
            return share, "negation_flip"
        if operation == "replace" and place and _other_figure(_numbered(subject.own), mine[a:b], text, theirs[c:d]):
            return share, "number_mismatch"
    return share, ""


def _denial(token: Token, language: Language) -> bool:
    return token.low in _negations(language) or token.low.endswith("n't")


def _denial_added(left: Sequence[Token], right: Sequence[Token], language: Language) -> bool:
    """One side denies, and the other has no word of its own that could deny as well ("refused", "unaware")."""
    ours, theirs = (any(_denial(token, language) for token in side) for side in (left, right))
    if ours == theirs:
        return False
    denying, other = (left, right) if ours else (right, left)
    return _meaning(other, language) <= _meaning(denying, language)


def _meaning(tokens: Sequence[Token], language: Language) -> frozenset[str]:
    return content(" ".join(token.low.removesuffix("n't") for token in tokens), language)


@lru_cache
def _negations(language: Language) -> frozenset[str]:
    return frozenset(load(language).negations) - {"without", "bez", "без", "ohne", "noch", "nor", "ani", "weder"}


def _other_figure(mine: str, left: Sequence[Token], theirs: str, right: Sequence[Token]) -> bool:
    """A bare figure in the place of another one; figures written otherwise are left to the number check."""
    one = mine[left[0].start : left[-1].end]
    two = theirs[right[0].start : right[-1].end]
    if not any(c.isdigit() for c in one) or not any(c.isdigit() for c in two):
        return False
    ours, other = _figures(one), _figures(two)
    return bool(ours) and bool(other) and not ours & other


def _figures(text: str) -> frozenset[float]:
    found = read(text, "other")
    values = {value for quantity in found.quantities for value in quantity.values}
    for moment in found.moments:
        values |= {float(part) for part in (moment.year, moment.day, moment.minute) if part is not None}
    return frozenset(values)
