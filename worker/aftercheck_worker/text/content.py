"""What a text is about, for comparing texts: content terms, names, and whether it denies something."""

from __future__ import annotations

import functools
import re
from typing import Final

from aftercheck_worker.text.lexicon import LANGUAGES, Language, load
from aftercheck_worker.text.tokens import Token, words

_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_CODE_NAME: Final = re.compile(r"^(?:[A-Z]{2,}[A-Za-z0-9]*|[A-Z]|(?:[A-Za-z]*\d[A-Za-z0-9-]*|[A-Z]+-\d+))$")
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ENGLISH_END: Final = re.compile(r"(?<=\w{4})(?:ings?|ed|es|ly)$")
_NO_DENIAL: Final = re.compile(
    r"\bno\.?(?= \d)|\bnothing but\b|\bnot only\b|\bnie tylko\b|\bне (?:лише|тільки|только)\b", re.IGNORECASE
)
_LONGER: Final = frozenset(
    (
        *("longer", "yet", "ever", "even", "any", "more", "of", "mehr", "länger"),
        *("już", "dłużej", "więcej", "більше", "вже", "больше", "уже"),
    )
)
_SLAVIC: Final = frozenset({"pl", "uk", "ru"})


def content(text: str, language: Language) -> frozenset[str]:
    """Return content terms, cut so that inflected forms meet; numbers, negations and function words are left out.

    Words joined by hyphens or capitals (`Wi-Fi`, `TakeOut`) are read in parts.
    """
    drop = _dropped(language)
    parted = _HUMP.sub(" ", text.replace("-", " ").replace("_", " "))
    found = {term for word in words(parted) if (term := _term(word.low, drop, language))}
    for run in _CJK.findall(text):
        found |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
    return frozenset(found)


def _term(word: str, drop: frozenset[str], language: Language) -> str:
    word = word.removesuffix("'s") if "'" in word else word
    if word in drop or word[0].isdigit() or _CJK.match(word):
        return ""
    term = _cut(word.replace(".", ""), language)
    return term if len(term) > 1 else ""


@functools.cache
def _calendar() -> frozenset[str]:
    """Months and weekdays of all languages: dates have their own check. `may` and `mar` are words as well."""
    lexicons = [load(language) for language in LANGUAGES]
    return frozenset(word for own in lexicons for word in (*own.months, *own.weekdays)) - {"may", "mar", "sec"}


@functools.cache
def _dropped(language: Language) -> frozenset[str]:
    own = load(language)
    return (
        frozenset(own.stopwords)
        | frozenset(own.negations)
        | frozenset(own.quantifiers)
        | frozenset(own.units)
        | _calendar()
    )


def _cut(word: str, language: Language) -> str:
    if language in _SLAVIC:
        return word[:5] if len(word) > 5 else word[:-1] if len(word) >= 4 else word
    bare = _ENGLISH_END.sub("", word) if language in ("en", "other") else word
    return bare[:5] if len(bare) > 5 else bare.removesuffix("s") if len(bare) > 3 else bare


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
        if (
            _CODE_NAME.match(shown)
            and not (len(shown) == 1 and (opens or previous[-1:].isdigit()))
            and not shown.isdigit()
            and shown != "I"
        ) or (language != "de" and len(shown) > 1 and shown[:1].isupper() and not opens):
            out.add(shown.lower().replace(".", "").removesuffix("'s"))
        previous, position = shown, word.end
    out -= _calendar()
    return frozenset(name for name in out if not name[0].isdigit() or any(c.isalpha() for c in name))


def alike(left: str, right: str) -> bool:
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


def denied_terms(text: str, language: Language) -> frozenset[str]:
    """Return the content terms that negations stand before; where nothing follows, the one behind them."""
    found = words(_NO_DENIAL.sub(" ", text.replace("-", " ")))
    negations = frozenset(load(language).negations) - {"without", "bez", "без", "ohne", "noch"}
    out: set[str] = set()
    for place, word in enumerate(found):
        if word.low in negations or word.low.endswith("n't"):
            out |= _first(found[place + 1 : place + 7], language) or _first(
                found[max(0, place - 3) : place][::-1], language
            )
    return frozenset(out)


def _first(tokens: list[Token], language: Language) -> frozenset[str]:
    """The terms of the first token that has any."""
    for token in tokens:
        found = content(token.low, language) if token.low not in _LONGER else None
        if found:
            return found
    return frozenset()
