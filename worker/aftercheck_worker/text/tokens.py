"""Words and content terms of a text. `terms` is the same function that cut the training windows."""

from __future__ import annotations

import functools
import re
from typing import Final

import msgspec

from aftercheck_worker.text.lexicon import load

_TOKEN: Final = re.compile(r"[^\W_]+(?:[.,:]\d+)*", re.UNICODE)
_WORD: Final = re.compile(r"[^\W_]+(?:['’.,:/@-][^\W_]+)*", re.UNICODE)
_LONG: Final = 6
_SHORT: Final = 3


@functools.cache
def _stopwords() -> frozenset[str]:
    """English (as in training) and Cyrillic ones; Polish and German ones would drop English words such as `die`."""
    return frozenset(word for language in ("en", "uk", "ru") for word in load(language).stopwords)


class Token(msgspec.Struct, frozen=True):
    """A word with its offsets in the text it was found in; `low` is its lower-case form."""

    low: str
    start: int
    end: int


def words(text: str) -> list[Token]:
    """Return the words of a text; dates, decimals, e-mail addresses and hyphenated words stay whole."""
    return [Token(found.group().lower(), found.start(), found.end()) for found in _WORD.finditer(text)]


def stem(word: str) -> str:
    """Cut a lower-case word to its first six letters, or drop a plural s. Numbers stay."""
    if not word.isalpha():
        return word
    if len(word) > _LONG:
        return word[:_LONG]
    return word.removesuffix("s") if len(word) > _SHORT else word


def terms(text: str) -> list[str]:
    """Return the content terms of a text in order: lower case, function words dropped, stemmed."""
    stop = _stopwords()
    return [stem(token) for token in _TOKEN.findall(text.lower()) if token not in stop]
