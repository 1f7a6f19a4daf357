"""Which lines of the evidence speak about the same thing as a claim: the anchors of every conviction.

A line is a unit of a passage. Lines are found through a term index, so that a claim is compared with at most
`CANDIDATES` of them however large the pool is.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from aftercheck_schemas.evaluation import Claim, Evidence
from aftercheck_worker.stages.checks.finding import Source
from aftercheck_worker.text.language import detect
from aftercheck_worker.text.lexicon import Language, load, pattern
from aftercheck_worker.text.normalise import flat, plain
from aftercheck_worker.text.numerals import Numerals, read
from aftercheck_worker.text.passages import units
from aftercheck_worker.text.tokens import words

CANDIDATES: Final = 40
SMALL_POOL: Final = 60
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_CODE_NAME: Final = re.compile(r"^(?:[A-Z]{2,}[A-Za-z0-9]*|[A-Z]|[^\W\d_]*\d[\w-]*)$")
_SLAVIC: Final = frozenset({"pl", "uk", "ru"})
_CITED: Final = re.compile(r"\[[^\]\n]{1,40}\]")


class Line(msgspec.Struct, frozen=True):
    """A unit of evidence: its source's index, its range there, its text, its terms and names."""

    source: int
    start: int
    end: int
    text: str
    terms: frozenset[str]
    names: frozenset[str]

    @property
    def numerals(self) -> Numerals:
        """Quantities and dates; offsets count in `text`."""
        return _read(self.text, "other")


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A claim made ready for comparison.

    Attributes:
        text: plain text of premise and claim. terms: content terms without numbers. names: what it is about.
        inherited: names taken from the dialogue, because the claim has only a pronoun.
        negated: the claim denies something. known: numerals of the question, which need no source.
    """

    claim: Claim
    text: str
    language: Language
    terms: frozenset[str]
    names: frozenset[str]
    inherited: frozenset[str]
    negated: bool
    numerals: Numerals
    known: Numerals


@functools.lru_cache(maxsize=8192)
def _read(text: str, language: Language) -> Numerals:
    return read(text, detect(text) if language == "other" else language)


def content(text: str, language: Language) -> frozenset[str]:
    """Return content terms, cut so that inflected forms meet; numbers, negations and function words are left out."""
    own = load(language)
    drop = _dropped(language)
    found = {
        _cut(word.low.split("'")[0], language)
        for word in words(text)
        if word.low not in drop and not word.low[0].isdigit() and word.low not in own.numbers
    }
    for run in _CJK.findall(text):
        found |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
    return frozenset(term for term in found if len(term) > 1)


@functools.cache
def _dropped(language: Language) -> frozenset[str]:
    own = load(language)
    return frozenset(own.stopwords) | frozenset(own.negations) | frozenset(own.quantifiers) | frozenset(own.units)


def _cut(word: str, language: Language) -> str:
    if len(word) > 5:  # noqa: PLR2004
        return word[:5]
    return word[:-1] if language in _SLAVIC and len(word) >= 4 else word.removesuffix("s") if len(word) > 3 else word  # noqa: PLR2004


def names(text: str, language: Language) -> frozenset[str]:
    """Return what looks like a name: codes (A1, ZX-404), and capitalised words that do not open a sentence.

    German writes every noun with a capital, so only codes count there.
    """
    out: set[str] = set()
    previous = ""
    position = 0
    for word in words(text):
        shown = text[word.start : word.end]
        opens = not previous or bool(re.search(r"[.!?:;\"|\n*-]\s*$", text[position : word.start]))
        if (_CODE_NAME.match(shown) and not (opens and len(shown) == 1) and not shown.isdigit() and shown != "I") or (
            language != "de" and shown[:1].isupper() and not opens
        ):
            out.add(shown.lower())
        previous, position = shown, word.end
    return frozenset(name for name in out if not name[0].isdigit() or any(c.isalpha() for c in name))


class Alignment:
    """All lines of a pool behind a term index. Built once per answer."""

    def __init__(self, sources: Sequence[Source], question: str = "", dialogue: Sequence[str] = ()) -> None:
        self.sources = tuple(sources)
        self.question = question
        self.dialogue = tuple(dialogue)
        self.lines: list[Line] = []
        self.vocabulary: set[str] = set()
        self._postings: dict[str, list[int]] = {}
        self.comparisons = 0
        for number, source in enumerate(self.sources):
            language = detect(source.text, "other")
            for unit in units(source.text):
                terms = content(unit.text, language)
                place = len(self.lines)
                self.lines.append(Line(number, unit.start, unit.end, unit.text, terms, names(unit.text, language)))
                self.vocabulary |= terms
                for term in terms:
                    self._postings.setdefault(term, []).append(place)

    def subject(self, claim: Claim) -> Subject:
        """Make a claim ready: markup and citation markers removed, premise in front, pronouns resolved to names."""
        own = flat(plain(_CITED.sub(" ", claim.text)))
        text = f"{flat(plain(claim.premise))} {own}".strip() if claim.premise and claim.type != "code" else own
        language = detect(text + "\n" + self.question[:300])
        found = names(text, language)
        pronoun = not found and any(
            pattern(code, "pronoun_start").search(own) for code in dict.fromkeys((language, "en"))
        )
        inherited = self._inherited(language) if pronoun else frozenset[str]()
        return Subject(
            claim=claim,
            text=text,
            language=language,
            terms=content(text, language),
            names=found,
            inherited=inherited,
            negated=denies(own, language),
            numerals=_read(text, language),
            known=_read(flat(self.question), "other"),
        )

    def _inherited(self, language: Language) -> frozenset[str]:
        for text in (self.question, *reversed(self.dialogue)):
            found = names(flat(text), language)
            if found:
                return found
        return frozenset()

    def candidates(self, subject: Subject) -> list[tuple[float, Line]]:
        """Return lines with their overlap (share of the claim's terms, 0..1), best first; at most `CANDIDATES`."""
        hits: Counter[int] = Counter()
        for term in subject.terms:
            hits.update(self._postings.get(term, ()))
        if len(self.lines) <= SMALL_POOL:
            for place in range(len(self.lines)):
                hits.setdefault(place, 0)
        found = sorted(hits, key=lambda place: (-hits[place], place))[:CANDIDATES]
        self.comparisons += len(found)
        size = max(1, len(subject.terms))
        return [(hits[place] / size, self.lines[place]) for place in found]

    def overlap(self, subject: Subject, line: Line) -> float:
        """Return the share of the claim's terms in a line, lowered when the line is about another of its kind."""
        share = len(subject.terms & line.terms) / max(1, len(subject.terms))
        about = subject.names | subject.inherited
        if about and line.names and not about & line.names and any(_alike(a, b) for a in about for b in line.names):
            return share * 0.5
        return share

    def cite(self, line: Line, score: float = 0.0) -> Evidence:
        """Return a line as verbatim evidence."""
        return self.sources[line.source].span(line.start, line.end, score)


def _alike(left: str, right: str) -> bool:
    """Two codes of one shape, such as X5 and X7 or A and B."""
    if not (_CODE_NAME.match(left.upper()) and _CODE_NAME.match(right.upper())) or left == right:
        return False
    shape = re.compile(r"\d+")
    if len(left) == 1 or len(right) == 1:
        return len(left) == len(right)
    return any(c.isdigit() for c in left) and shape.sub("0", left) == shape.sub("0", right)


def denies(text: str, language: Language) -> bool:
    """Return True when a text holds a negation (of its language or English), an answer's leading "No," left out."""
    low = re.sub(r"^\s*(?:no|nein|nie|ні|нет)\s*,\s*", "", text.lower())
    found = {word.low for word in words(low)}
    own = frozenset(load(language).negations) - {"without", "bez", "без", "ohne", "noch"}
    return bool(found & own) or any(word.endswith("n't") for word in found)
