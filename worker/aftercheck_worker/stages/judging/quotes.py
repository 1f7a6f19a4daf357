"""Quotes that are really there: normalised match, original offsets (issue text 3, trust S12).

A quote counts only when it stands word for word in its source after the same normalisation on both sides: NFKC,
case, quotation marks, dashes and white space. It has to begin and end between words, so "red" is not found in
"scored", and between numbers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from aftercheck_schemas import Evidence, Passage

_FOLD: Final = {
    **dict.fromkeys("‘’‚‛′`´ʼ", "'"),
    **dict.fromkeys("“”„‟«»″", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
}
_INVISIBLE: Final = frozenset("\u200b\u200c\u200d\u2060\ufeff\u00ad*_")
_UNEVEN: Final = re.compile(r"[*_]|\s\s|\A\s")
"""What makes an ASCII text shorter when it is normalised."""
_BLANKS: Final = {ord("`"): "'"} | {code: " " for code in range(128) if chr(code).isspace()}
_ELLIPSIS: Final = re.compile(r"\s*(?:\.{3,}|…|\[\s*(?:\.{3}|…)\s*\])\s*")
_WORD: Final = re.compile(r"\w+")
MAX_QUOTE_CHARS: Final = 1000


class Folded(msgspec.Struct, frozen=True):
    """A normalised text and, for each of its characters, the offset of the original character."""

    text: str
    offsets: Sequence[int]
    length: int


def fold(text: str) -> Folded:
    """Normalise `text`, keeping the way back to its offsets."""
    if text.isascii() and not _UNEVEN.search(text):  # one character for each: most quotes, many sources
        return Folded(text.translate(_BLANKS).lower(), range(len(text)), len(text))
    out: list[str] = []
    offsets: list[int] = []
    last = " "
    for position, character in enumerate(text):
        for letter in _letters(character):
            if letter != " " or last != " ":
                out.append(letter)
                offsets.append(position)
                last = letter
    return Folded("".join(out), tuple(offsets), len(text))


class Foldings(dict[str, Folded]):
    """The normalised sources by id, each folded when it is first asked for: most are never quoted."""

    def __init__(self, sources: Mapping[str, Passage]) -> None:
        super().__init__()
        self._sources = sources

    def __missing__(self, source_id: str) -> Folded:
        """Fold a source.

        Raises:
            KeyError: there is no such source.
        """
        found = self[source_id] = fold(self._sources[source_id].text)
        return found


@lru_cache(maxsize=4096)
def _letters(character: str) -> str:
    """What a character is compared as: none, one or several characters, white space as a blank."""
    if character in _INVISIBLE:
        return ""
    folded = unicodedata.normalize("NFKC", _FOLD.get(character, character)).casefold()
    return "".join(" " if raw.isspace() else _FOLD.get(raw, raw) for raw in folded)


def find(quote: str, source: Folded) -> tuple[tuple[int, int], ...]:
    """Return the original ranges of the quote's parts, empty when any part is missing.

    An ellipsis splits a quote into parts, which must follow one another in the source.
    """
    ranges: list[tuple[int, int]] = []
    start = 0
    for part in _ELLIPSIS.split(quote[:MAX_QUOTE_CHARS].strip()):
        needle = fold(part).text.strip().strip("\"'").strip()
        if not needle:
            continue
        found = _search(needle, source.text, start)
        if found < 0:
            return ()
        start = found + len(needle)
        ranges.append((source.offsets[found], source.offsets[start - 1] + 1))
    return tuple(ranges) if _telling(quote) else ()


def check(
    quote: str, source_id: str | None, passages: Mapping[str, Passage], folded: Mapping[str, Folded]
) -> tuple[Evidence, ...]:
    """Turn a judge's quote into evidence with offsets.

    Args:
        quote: as the judge wrote it.
        source_id: the judge's source; None or a name that is not a source searches all of them.
        passages: the usable sources by id.
        folded: the same sources, normalised.

    Returns:
        One `Evidence` per part of the quote; empty when the quote is void.
    """
    names = [source_id] if source_id is not None and source_id in passages else list(passages)
    for name in names:
        passage = passages[name]
        ranges = find(quote, folded[name])
        if ranges:
            return tuple(
                Evidence(
                    source_id=name,
                    start=start,
                    end=end,
                    text=passage.text[start:end],
                    kind=passage.kind,
                    trust=passage.trust,
                    score=1.0,
                )
                for start, end in ranges
            )
    return ()


def _search(needle: str, haystack: str, start: int) -> int:
    while (found := haystack.find(needle, start)) >= 0:
        end = found + len(needle)
        if not (_within_word(haystack, found) or _within_word(haystack, end)):
            return found
        start = found + 1
    return -1


def _within_word(text: str, place: int) -> bool:
    """Does a word or a number go on across this place? `9` is no quote of `9.5`, nor `5` of `0,5`."""
    before, after = text[max(0, place - 2) : place], text[place : place + 2]
    if not before or not after:
        return False
    if before[-1].isalnum() and after[0].isalnum():
        return True
    cut_before = before[-1].isdigit() and after[0] in ".," and after[1:].isdigit()
    return cut_before or (after[0].isdigit() and before[-1] in ".," and before[:-1].isdigit())


def _telling(quote: str) -> bool:
    """Two words, or one that carries something: a lone "the" proves nothing though it stands everywhere."""
    words = _WORD.findall(quote)
    return len(words) > 1 or any(len(word) > 3 or any(c.isdigit() for c in word) for word in words)
