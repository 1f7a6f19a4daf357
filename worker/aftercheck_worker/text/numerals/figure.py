"""Quantities written in figures: `1,250`, `$3.5 million`, `5-10 days`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from aftercheck_worker.text.lexicon import Language
from aftercheck_worker.text.numerals.quantity import MAX_QUANTITIES, Quantity
from aftercheck_worker.text.numerals.unit import APPROX, following, scales, unit_of
from aftercheck_worker.text.units import CURRENCIES, factor

LETTERS: Final = r"A-Za-z\u00b5\u00c0-\u024f\u0370-\u04ff"
"""Letters of alphabets that write spaces between words: a figure may touch a Chinese character, not one of these."""

_NUMBER: Final = re.compile(
    rf"(?<![{LETTERS}\d_.,/@#])(?<![^\d\s(]-)(?P<currency>US\$|[$€£¥₴₽]|(?:USD|EUR|GBP|PLN|UAH|RUB|CHF)(?=\s?\d))?\s?"
    r"(?P<sign>-(?=\d))?(?P<number>\d{1,3}(?:(?P<group>[ ,.'])\d{3})(?:(?P=group)\d{3})*(?:[.,]\d{1,9})?(?!\d)"
    r"|\d+(?:[.,]\d+)?)"
    rf"(?P<tail>%|°[CF]?|(?:st|nd|rd|th|-?го|-?й|-?та|-?ий)(?![{LETTERS}\d_])|[{LETTERS}]{{1,6}}(?:/[{LETTERS}]{{1,3}})?(?![{LETTERS}\d_]))?"
    rf"(?![{LETTERS}\d_]|[.,:]\d)"
)
_RANGE: Final = re.compile(r"\s?(?:-|to|bis|do|до|по)\s?")
_OUT_OF: Final = re.compile(r"(?:\bout of|\bvon|\bна|\bz|\bиз|\bіз|/)\s*$", re.IGNORECASE)


def figures(text: str, language: Language) -> Iterator[Quantity]:
    """Every figure with its scale, unit and noun, in order; at most `MAX_QUANTITIES`."""
    for number, found in enumerate(_NUMBER.finditer(text)):
        if number >= MAX_QUANTITIES:
            return
        if _OUT_OF.search(text[max(0, found.start() - 8) : found.start()]) and found.group("number") in (
            "5",
            "10",
            "100",
        ):
            continue  # "3.5 out of 5": the scale, not a value
        made = _figure(text, found, language)
        if made is not None:
            yield made


def ranged(text: str, found: list[Quantity]) -> list[Quantity]:
    """Give the first figure of "5-10 days" the unit of the second."""
    out = list(found)
    for index in range(len(out) - 2, -1, -1):
        left, right = out[index], out[index + 1]
        if left.unit or not (right.unit or right.noun) or not _RANGE.fullmatch(text[left.end : right.start]):
            continue
        size = factor(right.unit)
        out[index] = msgspec.structs.replace(
            left,
            unit=right.unit,
            noun=right.noun,
            values=tuple(v * size for v in left.values),
            steps=tuple(s * size for s in left.steps),
        )
    return out


def _figure(text: str, found: re.Match[str], language: Language) -> Quantity | None:
    readings = _readings(found.group("number"), found.group("group"), language)
    if not readings:
        return None
    tail = found.group("tail") or ""
    ordinal = tail.strip("-") in ("st", "nd", "rd", "th", "го", "й", "та", "ий")
    end = found.end()
    start = (
        found.start("currency") if found.group("currency") else found.start("number") - len(found.group("sign") or "")
    )
    scale, unit, noun = 1.0, CURRENCIES.get(found.group("currency") or "", ""), ""
    if tail and not ordinal:
        scale, unit_tail = _tail(tail, money=bool(unit))
        if scale == 0.0:
            return None  # a letter glued to a figure that is no unit: an identifier
        unit = unit or unit_tail
    scale, unit, noun, end = following(text, end, scale, unit)
    sign = -1.0 if found.group("sign") else 1.0
    size = scale * factor(unit)
    return Quantity(
        start=start,
        end=end,
        values=tuple(sign * value * size for value, _ in readings),
        steps=tuple(step * size for _, step in readings),
        unit=unit,
        noun=noun,
        approximate=bool(APPROX.search(text[max(0, start - 16) : start])),
        ordinal=ordinal,
    )


def _readings(number: str, group: str | None, language: Language) -> list[tuple[float, float]]:
    """Return (value, half step) of every reading of a figure; English groups by comma, German by full stop."""
    digits = number.replace(" ", "").replace("'", "")
    marks = [c for c in digits if c in ".,"]
    if not marks:
        return [(float(digits), 0.5)] if len(digits) < 19 else []
    last = max(digits.rfind("."), digits.rfind(","))
    decimals = len(digits) - last - 1
    whole = float(digits.replace(",", "").replace(".", ""))
    as_decimal = (
        float(digits[:last].replace(",", "").replace(".", "") + "." + digits[last + 1 :]),
        0.5 * 10.0**-decimals,
    )
    if len(set(marks)) == 2:
        return [as_decimal]
    if len(marks) > 1:
        return [(whole, 0.5)]
    if group in (" ", "'") or decimals != 3:
        return [as_decimal]
    if (language, group) in (("en", ","), ("de", ".")):
        return [(whole, 0.5)]
    return [(whole, 0.5), as_decimal]


def _tail(tail: str, *, money: bool) -> tuple[float, str]:
    """Scale and unit of letters glued to a figure; scale 0 when they are neither."""
    low = tail.lower()
    if low in ("k", "тис") or (low in ("m", "mln", "mn") and money) or tail == "M":
        return (1e3 if low in ("k", "тис") else 1e6), ""
    if low in ("bn", "mld", "mrd", "b") and (money or low != "b"):
        return 1e9, ""
    unit = unit_of(tail)
    if unit:
        return 1.0, unit
    scale = scales().get(low)
    return (scale, "") if scale is not None and len(low) > 1 else (0.0, "")
