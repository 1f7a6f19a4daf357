"""What stands behind a figure: scale word, unit, counted noun."""

from __future__ import annotations

import functools
import re
from typing import Final

from aftercheck_worker.text.language import all_stopwords
from aftercheck_worker.text.lexicon import LANGUAGES, load
from aftercheck_worker.text.units import CURRENCIES, EXACT, SYMBOLS

_AGE: Final = re.compile(r"[\s-]?olds?\b")
NEXT: Final = re.compile(r"[\s-]{0,2}([^\W\d_]+|%|°[CF]?|[€$£₴₽])(\.)?")
WORD: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
APPROX: Final = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|nearly|almost|circa|some|over|under|ca\.?|etwa|rund|ungefähr|knapp|około|ok\.|prawie|blisko|приблизно|близько|майже|около|примерно|почти)|[~≈])\s*$",
    re.IGNORECASE,
)


def following(text: str, end: int, scale: float, unit: str) -> tuple[float, str, str, int]:
    """Read scale word, unit and counted noun behind a figure."""
    for _ in range(2):
        found = NEXT.match(text, end)
        if found is None:
            break
        word = found.group(1)
        size = scales().get(word.lower()) if len(word) > 1 else None
        if size is not None:
            scale, end = scale * size, found.end(1) + (1 if found.group(2) and len(word) <= 4 else 0)
            continue
        own = "" if unit else (CURRENCIES.get(word) or unit_of(word, spaced=True))
        if own:
            aged = _AGE.match(text, found.end(1)) if own == "yr" else None
            return scale, "age" if aged else own, "", aged.end() if aged else found.end(1)
        return scale, unit, "" if word.lower() in all_stopwords() else word.lower(), end
    return scale, unit, "", end


def unit_of(word: str, *, spaced: bool = False) -> str:
    """Canonical unit of a word, `` when it is none; short words need the figure right in front of them."""
    if word in EXACT:
        return {"L": "l"}.get(word, word)
    if word.startswith("°"):
        return word if len(word) > 1 else "deg"
    low = word.lower()
    found = _unit_words().get(low) or SYMBOLS.get(low, "")
    return "" if spaced and found and low in ("in", "a", "m", "d") and word.islower() and low != "m" else found


@functools.cache
def _unit_words() -> dict[str, str]:
    return {word: unit for language in LANGUAGES for word, unit in load(language).units.items()}


@functools.cache
def scales() -> dict[str, float]:
    """Scale word of any language -> its size; `k` and `m` only count when glued to a figure."""
    return {
        word: size for language in LANGUAGES for word, size in load(language).scales.items() if word not in ("k", "m")
    }


def blank(text: str, spans: list[tuple[int, int]]) -> str:
    """The text with ranges blanked out, of the same length."""
    if not spans:
        return text
    out: list[str] = []
    position = 0
    for start, end in sorted(spans):
        if start < position:
            continue
        out += (text[position:start], "\x00" * (end - start))
        position = end
    out.append(text[position:])
    return "".join(out)
