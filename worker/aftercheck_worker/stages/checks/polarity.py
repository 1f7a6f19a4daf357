"""Negation, quantifier, antonym and name flips against a line that otherwise says the same."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final

from aftercheck_worker.stages.checks.alignment import Alignment, Line, Subject
from aftercheck_worker.stages.checks.finding import Finding
from aftercheck_worker.text.content import content, denied_terms
from aftercheck_worker.text.lexicon import Language, load
from aftercheck_worker.text.normalise import flat
from aftercheck_worker.text.tokens import words

COVERED: Final = 0.75
NEAR: Final = 3
MIN_REST: Final = 2
MAX_TERMS: Final = 10
_HEDGED: Final = re.compile(
    r"\b(?:i ?' ?m|i am) not (?:\w+ )?(?:sure|certain),?|^\s*(?:no|nein|nie|ні|нет)\s*,\s*", re.IGNORECASE
)
_CLAUSE: Final = re.compile(
    r"[,;]|\b(?:and|but|while|whereas|und|aber|während|oraz|ale|а|але|і|и|но)\b", re.IGNORECASE
)
_IMPLICIT: Final = re.compile(
    r"\b(?:refus|declin|fail|unaware|unable|lack|avoid|den(?:y|ied|ies)|reject|prevent|without|stopp?|odm[oó]w|brak|відмов|отказ|weiger|lehn)",
    re.IGNORECASE,
)
"""Words that deny without a negation: beside one, a missing negation proves nothing."""
_EXCLUSIVE: Final = frozenset(
    frozenset(pair.split())
    for pair in (
        "all none",
        "all some",
        "all few",
        "all most",
        "all half",
        "most few",
        "most none",
        "some none",
        "few none",
        "half none",
    )
)


def check(subject: Subject, alignment: Alignment) -> Iterator[Finding]:
    """Yield at most one finding per kind, from the lines that cover the claim best."""
    if subject.claim.type == "code":
        return
    rows = [(alignment.overlap(subject, line), line) for _, line in alignment.candidates(subject)[:8]]
    rows = [(share, line) for share, line in rows if share > 0]
    rows.sort(key=lambda row: -row[0])
    if not rows or len(subject.terms) < 2:
        return
    best = rows[0][0]
    near = [line for share, line in rows[:NEAR] if share >= best - 0.1]
    yield from _swapped_word(subject, alignment, near)
    yield from _swapped_clause(subject, alignment, near[0])
    yield from _quantifier(subject, alignment, near, best)
    if best >= COVERED:
        yield from _negation(subject, alignment, near)
    yield from _name(subject, alignment, near)


def _negation(subject: Subject, alignment: Alignment, lines: list[Line]) -> Iterator[Finding]:
    """One side denies what both speak of, the other does not."""
    if any(_denied(subject, line) == _denies(subject, line) for line in lines):
        return
    line = lines[0]
    if any(True for _ in _pairs_apart(subject, line)) or _other_values(subject, line):
        return
    evidence = (alignment.cite(line, 1.0),)
    implicit = _IMPLICIT.search(subject.text) or _IMPLICIT.search(line.text)
    if _tight(subject, line) and len(subject.terms) <= MAX_TERMS and not implicit:
        yield Finding(
            kind="polarity", effect="convict", status="contradicted", reason="negation_flip", evidence=evidence
        )
    else:
        yield Finding(kind="polarity", effect="escalate", reason="negation_doubt", evidence=evidence, strength=0.5)


def _denied(subject: Subject, line: Line) -> bool:
    """Does the line deny a term that it shares with the claim?"""
    return bool(denied_terms(flat(line.text), subject.language) & subject.terms)


def _denies(subject: Subject, line: Line) -> bool:
    """Does the claim deny a term that it shares with the line? "I'm not sure, but" denies nothing."""
    return bool(denied_terms(_HEDGED.sub("", subject.text), subject.language) & line.terms)


def _other_values(subject: Subject, line: Line) -> bool:
    own = {q.values for q in subject.numerals.quantities}
    theirs = {q.values for q in line.numerals.quantities}
    return bool(own) and bool(theirs) and not own & theirs


@functools.cache
def _antonyms(language: Language) -> tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]:
    out: list[tuple[re.Pattern[str], re.Pattern[str]]] = []
    for pair in load(language).antonyms:
        left, _, right = pair.partition("|")
        out.append((_bounded(left), _bounded(right)))
    return tuple(out)


def _bounded(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE)


def _pairs_apart(subject: Subject, line: Line) -> Iterator[str]:
    text = flat(line.text)
    for left, right in _antonyms(subject.language):
        for mine, theirs in ((left, right), (right, left)):
            if (
                mine.search(subject.text)
                and theirs.search(text)
                and not theirs.search(subject.text)
                and not mine.search(text)
            ):
                yield mine.pattern


def _swapped_word(subject: Subject, alignment: Alignment, lines: list[Line]) -> Iterator[Finding]:
    for line in lines:
        if not any(True for _ in _pairs_apart(subject, line)):
            return
    line = lines[0]
    if _denied(subject, line) != _denies(subject, line):
        return
    rest = len(subject.terms & line.terms) / max(1, len(subject.terms) - 1)
    if rest >= COVERED and _tight(subject, line):
        yield Finding(
            kind="antonym",
            effect="convict",
            status="contradicted",
            reason="antonym",
            evidence=(alignment.cite(line, 1.0),),
        )


def _swapped_clause(subject: Subject, alignment: Alignment, line: Line) -> Iterator[Finding]:
    """Both words stand in the line, each in its own clause: "is open on weekdays and closed on weekends".

    The clause with the opposite word must hold a term of the claim that the clause with the claim's word lacks, and
    not the reverse. What stands before the first of the two words is about both clauses.
    """
    if subject.terms - line.terms or _denied(subject, line) or _denies(subject, line):
        return
    text = flat(line.text)
    for left, right in _antonyms(subject.language):
        for mine, theirs in ((left, right), (right, left)):
            if mine.search(subject.text) and not theirs.search(subject.text):
                told, own = _told(text, mine, theirs, subject)
                if told - own and not own - told:
                    yield Finding(
                        kind="antonym",
                        effect="convict",
                        status="contradicted",
                        reason="antonym_clause",
                        evidence=(alignment.cite(line, 1.0),),
                    )
                    return


def _told(
    text: str, mine: re.Pattern[str], theirs: re.Pattern[str], subject: Subject
) -> tuple[frozenset[str], frozenset[str]]:
    """Terms of the claim in the clauses with the opposite word, and in those with the claim's; empty without both."""
    first, second = mine.search(text), theirs.search(text)
    if first is None or second is None:
        return frozenset(), frozenset()
    shared = content(text[: min(first.start(), second.start())], subject.language)
    clauses = _CLAUSE.split(text)
    own = " ".join(part for part in clauses if mine.search(part))
    opposite = " ".join(part for part in clauses if theirs.search(part) and not mine.search(part))
    if not own or not opposite:
        return frozenset(), frozenset()
    compared = subject.terms - shared - content(first.group(), subject.language)
    return compared & content(opposite, subject.language), compared & content(own, subject.language)


def _tight(subject: Subject, line: Line) -> bool:
    """The line says little beyond the claim, so that a swapped word cannot belong to something else in it."""
    return len(line.terms - subject.terms) <= max(4, len(subject.terms))


def _classes(text: str, language: Language) -> frozenset[str]:
    own = load(language).quantifiers
    return frozenset(own[word.low] for word in words(text) if word.low in own)


def _quantifier(subject: Subject, alignment: Alignment, lines: list[Line], best: float) -> Iterator[Finding]:
    mine = _classes(subject.text, subject.language)
    if best < COVERED or not mine:
        return
    for line in lines:
        theirs = _classes(flat(line.text), subject.language)
        if not theirs or mine & theirs:
            return
        if not any(frozenset((a, b)) in _EXCLUSIVE for a in mine for b in theirs) or not _tight(subject, line):
            return
    yield Finding(
        kind="quantifier",
        effect="convict",
        status="contradicted",
        reason="quantifier_flip",
        evidence=(alignment.cite(lines[0], 1.0),),
    )


def _name(subject: Subject, alignment: Alignment, lines: list[Line]) -> Iterator[Finding]:
    """One name in the place of another, everything around it equal."""
    asked = {word.low for word in words(flat(alignment.question))}
    mine_all, foreign = _named(subject, alignment)
    for line in lines:
        their_all = line.names if not foreign else _capitalised(flat(line.text))
        for mine, theirs in _replaced(subject, line):
            if mine not in mine_all or mine in asked or mine in their_all:
                continue
            names = {word for word in theirs if word in their_all and word not in mine_all}
            rest = subject.terms - {mine[:5], mine[:-1]}
            covered = (
                len(rest) >= MIN_REST and _tight(subject, line) and len(rest & line.terms) / len(rest) >= COVERED
            )
            if names and covered and not _shares_root(mine, names):
                yield _mismatch(mine, alignment, line)
                return
    if any(name not in asked and not _known(name, alignment) for name in subject.names):
        yield Finding(kind="entity", effect="escalate", reason="entity_not_in_evidence", strength=0.6)


def _named(subject: Subject, alignment: Alignment) -> tuple[frozenset[str], bool]:
    """Names of the claim. German writes every noun with a capital: there a name is one that no source holds."""
    if subject.language != "de":
        return subject.names, False
    new = {word for word in _capitalised(subject.text) if word[:5] not in alignment.vocabulary}
    return subject.names | new, bool(new)


def _capitalised(text: str) -> frozenset[str]:
    """Capitalised words of a German text but the first, units and numbers left out."""
    found = words(text)[1:]
    return frozenset(w.low for w in found if text[w.start].isupper() and content(w.low, "de"))


def _mismatch(mine: str, alignment: Alignment, line: Line) -> Finding:
    """A name that other lines hold may be right elsewhere: then the claim is only not found."""
    held = mine in alignment.names
    return Finding(
        kind="entity",
        effect="convict",
        status="not_found" if held else "contradicted",
        reason="entity_mismatch",
        evidence=(alignment.cite(line, 1.0),),
    )


def _replaced(subject: Subject, line: Line) -> Iterator[tuple[str, list[str]]]:
    """Words of the claim that stand where the line has others, equal words on both sides."""
    mine = [word.low.replace(".", "") for word in words(subject.text)][:120]
    theirs = [word.low.replace(".", "") for word in words(flat(line.text))][:120]
    codes = SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes()
    for place, (operation, a, b, c, d) in enumerate(codes):
        framed = (place == 0 or codes[place - 1][0] == "equal") and (
            place + 1 == len(codes) or codes[place + 1][0] == "equal"
        )
        if operation == "replace" and framed and b - a <= 3 and d - c <= 3:
            for word in mine[a:b]:
                yield word, theirs[c:d]


def _shares_root(name: str, others: set[str]) -> bool:
    return any(name[:4] == other[:4] for other in others)


def _known(name: str, alignment: Alignment) -> bool:
    for size in (5, len(name), len(name) - 1):
        if name[:size] in alignment.vocabulary:
            return True
    return name in alignment.names
