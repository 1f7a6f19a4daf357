"""Which lines of the evidence speak about the same thing as a claim: the anchors of every conviction.

A line is a unit of a passage. Lines are found through a term index, so that a claim is compared with at most
`CANDIDATES` of them however large the pool is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from aftercheck_schemas.evaluation import Claim, Evidence
from aftercheck_worker.stages.checks.finding import Source
from aftercheck_worker.text.content import alike, content, denies, names
from aftercheck_worker.text.language import detect
from aftercheck_worker.text.lexicon import Language, pattern
from aftercheck_worker.text.normalise import flat, plain
from aftercheck_worker.text.numerals import Numerals, read
from aftercheck_worker.text.passages import units

CANDIDATES: Final = 40
SMALL_POOL: Final = 60
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
        text: plain text of premise and claim. own: of the claim alone; its numerals are the ones that count.
        terms: content terms without numbers. names: what it is about.
        inherited: names taken from the dialogue, because the claim has only a pronoun.
        negated: the claim denies something. known: numerals of the question, which need no source.
        asked, asked_names: content terms and names of the question.
    """

    claim: Claim
    text: str
    own: str
    language: Language
    terms: frozenset[str]
    names: frozenset[str]
    inherited: frozenset[str]
    negated: bool
    numerals: Numerals
    known: Numerals
    asked: frozenset[str]
    asked_names: frozenset[str]


@functools.lru_cache(maxsize=8192)
def _read(text: str, language: Language) -> Numerals:
    return read(text, detect(text) if language == "other" else language)


class Alignment:
    """All lines of a pool behind a term index. Built once per answer."""

    def __init__(self, sources: Sequence[Source], question: str = "", dialogue: Sequence[str] = ()) -> None:
        self.sources = tuple(sources)
        self.question = question
        self.dialogue = tuple(dialogue)
        self.lines: list[Line] = []
        self.vocabulary: set[str] = set()
        postings: dict[str, list[int]] = {}
        self._asked: tuple[Subject, list[tuple[float, Line]]] | None = None
        self.comparisons = 0
        self._sample = question[:300] + "\n" + "\n".join(source.text[:200] for source in self.sources[:3])
        for number, source in enumerate(self.sources):
            language = detect(f"{source.text[:1000]}\n{self._sample}")
            for unit in units(source.text):
                terms = content(unit.text, language)
                place = len(self.lines)
                self.lines.append(Line(number, unit.start, unit.end, unit.text, terms, names(unit.text, language)))
                self.vocabulary |= terms
                for term in terms:
                    postings.setdefault(term, []).append(place)
        self._postings = {term: np.array(places, dtype=np.intp) for term, places in postings.items()}

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """All names of all lines."""
        return frozenset(name for line in self.lines for name in line.names)

    @functools.cached_property
    def letters(self) -> str:
        """All texts, flat and lower-case: for identifiers that must stand somewhere letter by letter."""
        return "\n".join(flat(source.text).lower() for source in self.sources)

    def subject(self, claim: Claim) -> Subject:
        """Make a claim ready: markup and citation markers removed, premise in front, pronouns resolved to names."""
        own = flat(plain(_CITED.sub(" ", claim.text)))
        text = f"{flat(plain(claim.premise))} {own}".strip() if claim.premise and claim.type != "code" else own
        language = detect(f"{text}\n{self._sample}")
        found = names(text, language)
        pronoun = not found and any(
            pattern(code, "pronoun_start").search(own) for code in dict.fromkeys((language, "en"))
        )
        inherited = self._inherited(language) if pronoun else frozenset[str]()
        return Subject(
            claim=claim,
            text=text,
            own=own,
            language=language,
            terms=content(text, language),
            names=found,
            inherited=inherited,
            negated=denies(own, language),
            numerals=_read(own, language),
            known=_read(flat(self.question), "other"),
            asked=content(flat(self.question), language),
            asked_names=names(flat(self.question), language),
        )

    def _inherited(self, language: Language) -> frozenset[str]:
        for text in (self.question, *reversed(self.dialogue)):
            found = names(flat(text), language)
            if found:
                return found
        return frozenset()

    def candidates(self, subject: Subject) -> list[tuple[float, Line]]:
        """Return lines with their overlap (share of the claim's terms, 0..1), best first; at most `CANDIDATES`."""
        if self._asked is not None and self._asked[0] is subject:
            return self._asked[1]
        found = self._nearest(subject)
        self._asked = (subject, found)
        return found

    def _nearest(self, subject: Subject) -> list[tuple[float, Line]]:
        hits = np.zeros(len(self.lines), dtype=np.intp)
        for term in subject.terms:
            places = self._postings.get(term)
            if places is not None:
                hits[places] += 1
                self.comparisons += len(places)
        keys = hits * (len(hits) + 1) - np.arange(len(hits))  # more hits first, then the earlier line
        some = np.arange(len(hits)) if len(hits) <= SMALL_POOL else np.flatnonzero(hits)
        if len(some) > CANDIDATES:
            some = some[np.argpartition(-keys[some], CANDIDATES - 1)[:CANDIDATES]]
        size = max(1, len(subject.terms))
        order = sorted(some.tolist(), key=lambda place: -keys[place])
        return [(int(hits[place]) / size, self.lines[place]) for place in order[:CANDIDATES]]

    def overlap(self, subject: Subject, line: Line) -> float:
        """Return the share of the claim's terms in a line, lowered when the line is about another of its kind."""
        share = len(subject.terms & line.terms) / max(1, len(subject.terms))
        about = subject.names | subject.inherited
        if about and line.names and not about & line.names and any(alike(a, b) for a in about for b in line.names):
            return share * 0.5
        return share

    def cite(self, line: Line, score: float = 0.0) -> Evidence:
        """Return a line as verbatim evidence."""
        return self.sources[line.source].span(line.start, line.end, score)
