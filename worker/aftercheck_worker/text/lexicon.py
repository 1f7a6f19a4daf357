"""Word and pattern lists per language, kept as data (`lexicons/*.toml`), with a digest for `evaluator_version`.

Pattern lists hold regular expressions that are joined into one alternation per category and matched without
regard to case on the folded sentence. Word lists hold lower-case words.
"""

from __future__ import annotations

import functools
import hashlib
import re
import tomllib
from importlib.resources import files
from typing import Final, Literal

import msgspec

Language = Literal["en", "pl", "uk", "ru", "de", "other"]
"""Languages with a lexicon; `other` reads the English one."""

LANGUAGES: Final[tuple[Language, ...]] = ("en", "pl", "uk", "ru", "de")

Category = Literal[
    "greeting",
    "question",
    "offer",
    "hedge",
    "refusal",
    "handover",
    "meta",
    "meta_prefix",
    "opinion",
    "plan",
    "action_first_person",
    "action_passive",
    "state",
    "causal",
    "attribution",
    "sources",
    "high_severity",
    "yes_no",
    "pronoun_start",
    "contrast",
    "coordinator",
    "includes",
]
_FLAGS: Final = re.IGNORECASE | re.UNICODE
_NEVER: Final = re.compile(r"(?!)")
_CAPITAL: Final = re.compile(r"(?<!\\)[^\W\d_a-z]")
"""A letter to lower; not `\\W`, `\\S` and the like."""


class Lexicon(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One language's lists.

    Attributes:
        patterns: category -> regular expressions, searched anywhere in a sentence unless they anchor themselves.
        stopwords: function words; they also tell languages apart.
        finite_verbs: frequent finite verb forms, for splitting coordinated clauses.
        negations: words that turn a statement round. quantifiers: word -> class (`all`, `some`, `none`, ...).
        numbers: spelled cardinal -> value. scales: `million` -> 1e6.
        months: every inflected or shortened form -> 1..12. weekdays: form -> 1..7.
        units: spelled unit -> its canonical symbol.
        abbreviations: words before a full stop that end no sentence when a lower-case word or digit follows.
        titles: abbreviations that end no sentence whatever follows.
        antonyms: pairs `a|b` that exclude one another.
    """

    patterns: dict[str, tuple[str, ...]]
    stopwords: tuple[str, ...]
    finite_verbs: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()
    quantifiers: dict[str, str] = {}
    numbers: dict[str, float] = {}
    scales: dict[str, float] = {}
    months: dict[str, int] = {}
    weekdays: dict[str, int] = {}
    units: dict[str, str] = {}
    abbreviations: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    antonyms: tuple[str, ...] = ()


def _raw(language: str) -> bytes:
    return files("aftercheck_worker.text").joinpath("lexicons", f"{language}.toml").read_bytes()


@functools.cache
def load(language: Language) -> Lexicon:
    """Return the lexicon of a language; English for `other`."""
    name = "en" if language == "other" else language
    return msgspec.convert(tomllib.loads(_raw(name).decode("utf-8")), Lexicon, strict=False)


@functools.cache
def pattern(language: Language, category: Category) -> re.Pattern[str]:
    """Return the compiled alternation of one category; a pattern that never matches when the list is empty."""
    parts = load(language).patterns.get(category, ())
    return re.compile("|".join(f"(?:{part})" for part in parts), _FLAGS) if parts else _NEVER


def matches(language: Language, category: Category, lowered: str) -> bool:
    """Say whether a category's pattern occurs in a text that is lower-cased already.

    As `pattern(language, category).search(text) is not None`, at about a third of the cost: without IGNORECASE, and
    with alternatives that are anchored to the start tried there only.
    """
    start, anywhere = _finders(language, category)
    return bool((start and start.match(lowered)) or (anywhere and anywhere.search(lowered)))


@functools.cache
def _finders(language: Language, category: Category) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
    parts = load(language).patterns.get(category, ())
    return _joined([p for p in parts if _anchored(p)]), _joined([p for p in parts if not _anchored(p)])


def _joined(parts: list[str]) -> re.Pattern[str] | None:
    lowered = (_CAPITAL.sub(lambda found: found.group().lower(), part) for part in parts)
    return re.compile("|".join(f"(?:{part})" for part in lowered)) if parts else None


def _anchored(part: str) -> bool:
    """Is `^` in front of the whole expression, not of one alternative?"""
    depth, inside, escaped = 0, False, False
    for char in part:
        if escaped or char == "\\":
            escaped = not escaped
        elif inside:
            inside = char != "]"
        elif char == "[":
            inside = True
        elif char == "|" and depth == 0:
            return False
        else:
            depth += (char == "(") - (char == ")")
    return part.startswith("^")


@functools.cache
def digest() -> str:
    """Return sha256 (hex) over all lexicon files: a part of `evaluator_version` (R25)."""
    total = hashlib.sha256()
    for language in LANGUAGES:
        total.update(language.encode() + b"\0" + _raw(language) + b"\0")
    return total.hexdigest()
