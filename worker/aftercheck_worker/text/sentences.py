r"""Markdown blocks and sentences with exact offsets: `text[span.start:span.end]` is the sentence, always.

Sentences come from sentencex (about 300 languages). A patch mends what was measured wrong there: breaks after
Polish, Ukrainian, Russian and German abbreviations, after German ordinals, and the missing break after `2023 г.`.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Final, Literal, cast

import msgspec
import sentencex

from aftercheck_worker.text.lexicon import Language, load

BlockKind = Literal["paragraph", "heading", "item", "row", "table_head", "code", "quote"]
MAX_SENTENCE: Final = 700
"""Longest sentence, in characters; longer ones are cut at a clause or word boundary (nothing is lost)."""

_FENCE: Final = re.compile(r"^ {0,3}(```+|~~~+)")
_HEADING: Final = re.compile(
    r"^ {0,3}#{1,6}(?:\s|$)|^\s*\*\*[^*\n.!?]{1,80}\*\*\s*:?\s*$|^\s*__[^_\n.!?]{1,80}__\s*:?\s*$"
)
_RULE: Final = re.compile(r"^\s*(?:[-=*_]\s*){3,}$")
_ITEM: Final = re.compile(r"^\s*(?:[-*+•‣–]|\d{1,3}[.)]|[a-z][.)])\s+(?=\S)")
_ROW: Final = re.compile(r"^\s*\|.*\|\s*$")
_ROW_RULE: Final = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*:?-*:?\s*\|?\s*$")
_QUOTE: Final = re.compile(r"^\s*>+\s?")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_LAST_WORD: Final = re.compile(r"([^\s(«„\"'\[]+)\.[\"')\]»”]*\s*$")
_ORDINAL: Final = re.compile(r"(?:^|\s)\d{1,2}\.\s*$")
_ORDINAL_LEAD: Final = re.compile(
    r"\b(?:im|am|der|die|das|vom|zum|zur|den|dem|des|ab|bis|seit|jedes|jeden|dieses|in|pro|und)\s+\d{1,2}\.\s*$",
    re.IGNORECASE,
)
_YEAR_BREAK: Final = re.compile(
    r"(?<=\d{4} г\.)\s+(?=[А-ЯЁІЇЄҐ])|(?<=\d{4} р\.)\s+(?=[А-ЯЁІЇЄҐ])|(?<=\d{4} r\.)\s+(?=[A-ZŁŚŻŹĆÓ])"
)
_MAY_BREAK: Final = re.compile(r"(?<=\bMay\.)\s+(?=[A-Z])")
_UPPER: Final = "A-ZÀ-ÖØ-ÞĄĆĘŁŃŚŹŻ\u0400-\u042f\u0490"
_PAREN_BREAK: Final = re.compile(rf"(?<=[.!?…])\s+(?=\([{_UPPER}][^()]*[.!?]\))|(?<=[.!?…]\))\s+(?=[{_UPPER}])")
_CHAT_BREAK: Final = re.compile(
    r"(?<=[^\W\d_] [!?])\s+(?=\w)|(?<=\w[!?])\s+(?=(?:it|they|he|she|we|you|there|these|those|this|that|i)\b)"
)
"""Chat writes on in lower case after "!" and "?"; without capitals only a loose mark or a pronoun tells."""
_CUT: Final = re.compile(r"[;:,]\s|\s")
_END: Final = re.compile(r"[.!?…:;。！？]['\"*_)\]»”’`]*\s*$")


class Span(msgspec.Struct, frozen=True):
    """A half-open range of characters (code points)."""

    start: int
    end: int


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A markdown block. `start`..`end` leaves out the marker (bullet, `#`, `>`, fence lines)."""

    kind: BlockKind
    start: int
    end: int


def blocks(text: str) -> list[Block]:
    """Cut a text into markdown blocks in order; white space between blocks belongs to none. Linear."""
    return _BlockReader(text).read()


class _BlockReader:
    """Reads line by line; paragraphs grow until something ends them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.out: list[Block] = []
        self.open: tuple[BlockKind, int, int] | None = None
        self.fence: tuple[str, int] | None = None

    def read(self) -> list[Block]:
        for start, end in _lines(self.text):
            line = self.text[start:end]
            if not self._code(line, start, end):
                self._line(line, start, end)
        if self.fence is not None:
            self._emit("code", self.fence[1], len(self.text))
        self._close()
        return self.out

    def _code(self, line: str, start: int, end: int) -> bool:
        found = _FENCE.match(line)
        if self.fence is not None:
            if found is not None and found.group(1).startswith(self.fence[0]):
                self._emit("code", self.fence[1], start)
                self.fence = None
            return True
        if found is None:
            return False
        self._close()
        self.fence = (found.group(1)[:3], min(end + 1, len(self.text)))
        return True

    def _line(self, line: str, start: int, end: int) -> None:
        if not line.strip():
            self._close()
        elif _HEADING.match(line):
            self._close()
            self._emit("heading", start + len(line) - len(line.lstrip(" #*_")), end)
        elif _ROW.match(line) or _ROW_RULE.match(line):
            self._row(line, start, end)
        elif _RULE.match(line):
            self._setext()
        elif (item := _ITEM.match(line)) is not None:
            self._close()
            self.open = ("item", start + item.end(), end)
        elif (quote := _QUOTE.match(line)) is not None:
            self._close()
            self.open = ("quote", start + quote.end(), end)
        elif self.open is not None and self._continues(line):
            self.open = (self.open[0], self.open[1], end)
        else:
            self._close()
            self.open = ("paragraph", start, end)

    def _continues(self, line: str) -> bool:
        assert self.open is not None  # noqa: S101 - narrows for the type checker; the caller tested it
        before = self.text[max(self.open[1], self.open[2] - 80) : self.open[2]]
        first = line.lstrip()[:1]
        return bool(_END.search(before)) if not first.islower() else True

    def _row(self, line: str, start: int, end: int) -> None:
        self._close()
        if _ROW_RULE.match(line):
            if self.out and self.out[-1].kind == "row":
                head = self.out.pop()
                self.out.append(Block(kind="table_head", start=head.start, end=head.end))
            return
        self._emit("row", start, end)

    def _setext(self) -> None:
        if (
            self.open is not None
            and self.open[0] == "paragraph"
            and "\n" not in self.text[self.open[1] : self.open[2]]
        ):
            self._emit("heading", self.open[1], self.open[2])
            self.open = None
        self._close()

    def _close(self) -> None:
        if self.open is not None:
            self._emit(*self.open)
            self.open = None

    def _emit(self, kind: BlockKind, start: int, end: int) -> None:
        span = trim(self.text, start, end)
        if span.end > span.start:
            self.out.append(Block(kind=kind, start=span.start, end=span.end))


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield start, start + len(line.rstrip("\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"))
        start += len(line)


def trim(text: str, start: int, end: int) -> Span:
    """Shrink a range to leave out white space at both ends."""
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    return Span(start + left, start + max(left, len(piece.rstrip())))


def sentences(text: str, start: int = 0, end: int | None = None, language: Language = "other") -> list[Span]:
    """Split a range of a text into sentences.

    Args:
        text: the whole text; offsets of the result count in it.
        start: where the range to split begins.
        end: where it ends, None for the end of the text.
        language: chooses sentencex's rules and the abbreviation lists.

    Returns:
        Non-empty, trimmed, ascending spans that do not overlap; together they hold every visible character.
    """
    stop = len(text) if end is None else end
    piece = text[start:stop]
    kept = {cut for cut in _boundaries(piece, start, language) if not _false_break(text, cut, language)}
    added = {
        start + found.end()
        for rule in (_YEAR_BREAK, _PAREN_BREAK, _MAY_BREAK, _CHAT_BREAK)
        for found in rule.finditer(piece)
    }
    cuts = sorted(kept | added)
    spans = [trim(text, a, b) for a, b in _pairs(start, cuts, stop)]
    return [part for span in spans if span.end > span.start for part in _bounded(text, span)]


def _boundaries(piece: str, offset: int, language: Language) -> list[int]:
    """Offsets at which sentencex starts a new sentence."""
    if not piece.strip():
        return []
    safe = _SURROGATE.sub("?", piece)  # Rust strings hold no lone surrogate; same length, so offsets stay
    segment = cast("Callable[[str, str], list[str]]", getattr(sentencex, "segment"))  # noqa: B009 - no stubs
    parts = segment("en" if language == "other" else language, safe)
    out: list[int] = []
    position = 0
    for part in parts:
        found = safe.find(part, position)
        if found < 0:
            continue
        if found > 0:
            out.append(offset + found)
        position = found + len(part)
    return out


def _false_break(text: str, cut: int, language: Language) -> bool:
    before, after = text[max(0, cut - 40) : cut], text[cut : cut + 40].lstrip()
    if "\n" in before[len(before.rstrip()) :]:
        return False
    if language == "de" and _ORDINAL.search(before) and _ORDINAL_LEAD.search(before):
        return True
    word = _LAST_WORD.search(before)
    if word is None:
        return False
    name = word.group(1).lower()
    if name in _titles(language):
        return True
    return name in _abbreviations(language) and (after[:1].islower() or after[:1].isdigit())


@functools.cache
def _titles(language: Language) -> frozenset[str]:
    return frozenset(load(language).titles)


@functools.cache
def _abbreviations(language: Language) -> frozenset[str]:
    own = load(language)
    return frozenset(own.abbreviations) | frozenset(own.titles)


def _pairs(start: int, cuts: list[int], stop: int) -> Iterator[tuple[int, int]]:
    edges = [start, *cuts, stop]
    return itertools.pairwise(edges)


def _bounded(text: str, span: Span) -> Iterator[Span]:
    """Cut an over-long sentence at the last clause or word boundary before the limit."""
    start = span.start
    while span.end - start > MAX_SENTENCE:
        window = text[start : start + MAX_SENTENCE]
        cut = next((m.end() for m in _CUT.finditer(window, MAX_SENTENCE // 2) if m.group()[0] in ";:"), 0)
        cut = cut or max(window.rfind(", ") + 1, window.rfind(" ") + 1) or MAX_SENTENCE
        piece = trim(text, start, start + cut)
        if piece.end > piece.start:
            yield piece
        start += cut
    last = trim(text, start, span.end)
    if last.end > last.start:
        yield last
