"""Which of our languages a text is in: by script, tell-tale letters and function words. No model, no network."""

from __future__ import annotations

import functools
import re
from collections import Counter
from typing import Final

from aftercheck_worker.text.lexicon import LANGUAGES, Language, load

_SAMPLE: Final = 4000
_WORD: Final = re.compile(r"[^\W\d_]+")
_CYRILLIC: Final = re.compile(r"[\u0400-\u04ff]")
_LATIN: Final = re.compile(r"[A-Za-z\u00c0-\u024f]")
_LETTERS: Final[dict[Language, re.Pattern[str]]] = {
    "pl": re.compile(r"[ąćęłńśźż]", re.IGNORECASE),
    "uk": re.compile(r"[іїєґ]", re.IGNORECASE),
    "ru": re.compile(r"[ыэъё]", re.IGNORECASE),
    "de": re.compile(r"[äöüß]", re.IGNORECASE),
}


@functools.cache
def _stopwords(language: Language) -> frozenset[str]:
    return frozenset(load(language).stopwords)


def detect(text: str, default: Language = "other") -> Language:
    """Return the language of a text, judged by its first 4,000 characters.

    Args:
        text: any text, also empty or garbage.
        default: returned when nothing speaks for a language (numbers only, an unknown language).
    """
    sample = text[:_SAMPLE]
    if sample.isascii():  # counting every letter costs more than all the rest
        cyrillic, latin = 0, int(_LATIN.search(sample) is not None)
    else:
        cyrillic, latin = len(_CYRILLIC.findall(sample)), len(_LATIN.findall(sample))
    if not cyrillic and not latin:
        return default
    candidates: tuple[Language, ...] = ("uk", "ru") if cyrillic > latin else ("en", "pl", "de")
    words = Counter(word.lower() for word in _WORD.findall(sample) if cyrillic or len(word) > 1)
    scores = {language: _score(language, words, sample) for language in candidates}
    best = max(candidates, key=lambda language: scores[language])
    if scores[best] > 0:
        return best
    return "ru" if cyrillic > latin else default


def _score(language: Language, words: Counter[str], sample: str) -> float:
    known = sum(count for word, count in words.items() if word in _stopwords(language))
    letters = _LETTERS.get(language)
    return known + (2.0 * min(len(letters.findall(sample)), 50) if letters and not sample.isascii() else 0.0)


def all_stopwords() -> frozenset[str]:
    """Return the function words of all languages together."""
    return _all_stopwords()


@functools.cache
def _all_stopwords() -> frozenset[str]:
    return frozenset(word for language in LANGUAGES for word in load(language).stopwords)
