"""Quotes: verbatim, altered, or nowhere. Typography is folded, meaning is not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

import msgspec

from aftercheck_worker.stages.checks.alignment import Alignment, Subject
from aftercheck_worker.stages.checks.finding import Finding, Source
from aftercheck_worker.text.content import content, denies
from aftercheck_worker.text.lexicon import Language
from aftercheck_worker.text.normalise import Folded, fold
from aftercheck_worker.text.tokens import Token, words

MIN_WORDS: Final = 3
MAX_FRAME: Final = 4
MAX_SOURCES: Final = 200
ALTERED: Final = 0.8
EXACT_TOKENS: Final = 0.95
MAX_QUOTE_WORDS: Final = 200
_QUOTED: Final = re.compile(r"[\"“„«»]([^\"“”„«»\n]{6,2000})[\"”“»«]")


def check(subject: Subject, alignment: Alignment) -> Iterator[Finding]:
    """Yield one finding per quote of three words or more."""
    if subject.claim.type == "code":
        return
    for found in _QUOTED.finditer(subject.claim.text):
        quote = fold(found.group(1)).text.strip(" .,;:!?…")
        tokens = words(quote)
        if MIN_WORDS <= len(tokens) <= MAX_QUOTE_WORDS:
            finding = _judge(quote, [token.low for token in tokens], subject.language, _near(subject, alignment))
            if finding.effect == "support" and not _bare(subject, found.group(1)):
                finding = msgspec.structs.replace(finding, strength=0.5)  # the rest of the claim is not read here
            yield finding


def _bare(subject: Subject, quote: str) -> bool:
    """The claim is little more than the quote and who said it."""
    return len(subject.terms - content(fold(quote).text, subject.language)) <= MAX_FRAME


def _near(subject: Subject, alignment: Alignment) -> Sequence[Source]:
    """All sources of a small pool, those of the nearest lines of a large one."""
    if len(alignment.sources) <= MAX_SOURCES:
        return alignment.sources
    return [alignment.sources[n] for n in dict.fromkeys(line.source for _, line in alignment.candidates(subject))]


def _judge(quote: str, tokens: list[str], language: Language, sources: Sequence[Source]) -> Finding:
    best: tuple[float, Finding] | None = None
    for source in sources:
        folded = _fold(source.text)
        at = folded.text.find(quote)
        if at >= 0:
            start, end = folded.source(at, at + len(quote))
            return Finding(
                kind="quote", effect="support", reason="quote_exact", evidence=(source.span(start, end, 1.0),)
            )
        near = _nearest(tokens, source, folded, language)
        if near is not None and (best is None or near[0] > best[0]):
            best = near
    return (
        best[1]
        if best is not None
        else Finding(kind="quote", effect="convict", status="not_found", reason="quote_not_found")
    )


@lru_cache(maxsize=512)
def _fold(text: str) -> Folded:
    return fold(text)


@lru_cache(maxsize=512)
def _words(text: str) -> tuple[Token, ...]:
    return tuple(words(text))


def _nearest(tokens: list[str], source: Source, folded: Folded, language: Language) -> tuple[float, Finding] | None:
    """Compare with the stretch of the source that shares most words with the quote."""
    found = _words(folded.text)
    stretch = _stretch(tokens, found)
    if stretch is None:
        return None
    theirs = [token.low for token in stretch]
    matcher = SequenceMatcher(None, tokens, theirs, autojunk=False)
    ratio = matcher.ratio()
    if ratio < ALTERED:
        return None
    start, end = folded.source(stretch[0].start, stretch[-1].end)
    evidence = (source.span(start, end, ratio),)
    codes = matcher.get_opcodes()
    changed = [(tokens[a:b], theirs[c:d]) for operation, a, b, c, d in codes if operation == "replace"]
    critical = any(_critical(left, right, language) for left, right in changed)
    added = any(operation == "delete" and _critical(tokens[a:b], [], language) for operation, a, b, _, _ in codes)
    if added and not critical:
        return None  # the quote says more than the source: a composite of two sentences
    if critical:
        return ratio, Finding(
            kind="quote",
            effect="convict",
            status="contradicted",
            reason="quote_altered",
            evidence=evidence,
            strength=ratio,
        )
    if ratio >= EXACT_TOKENS:
        return ratio, Finding(kind="quote", effect="support", reason="quote_near", evidence=evidence, strength=ratio)
    return ratio, Finding(
        kind="quote", effect="cap", status="unclear", reason="quote_altered", evidence=evidence, strength=ratio
    )


def _stretch(tokens: list[str], found: Sequence[Token]) -> list[Token] | None:
    """Return the window of the quote's length with most shared words; linear by a sliding count."""
    size = len(tokens)
    wanted = Counter(tokens)
    held: Counter[str] = Counter()
    shared = 0
    best = (0, False)
    place = -1
    for index, token in enumerate(found):
        held[token.low] += 1
        shared += held[token.low] <= wanted[token.low]
        if index >= size:
            old = found[index - size].low
            shared -= held[old] <= wanted[old]
            held[old] -= 1
        opens = found[max(0, index - size + 1)].low == tokens[0]
        if (shared, opens) > best:
            best, place = (shared, opens), index
    if place < 0 or best[0] < 0.6 * size:
        return None
    return list(found[max(0, place - size + 1) : place + 1])


def _critical(left: list[str], right: list[str], language: Language) -> bool:
    """A changed figure, negation, or a whole word replaced by another of a different root."""
    mine, theirs = " ".join(left), " ".join(right)
    if any(c.isdigit() for c in mine + theirs) or denies(mine, language) != denies(theirs, language):
        return True
    return bool(left) and bool(right) and left[0][:4] != right[0][:4]
