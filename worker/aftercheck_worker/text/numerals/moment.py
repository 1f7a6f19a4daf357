"""Dates, years, weekdays and times of day in text."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from aftercheck_worker.text.language import all_stopwords
from aftercheck_worker.text.lexicon import LANGUAGES, load
from aftercheck_worker.text.numerals.quantity import MAX_QUANTITIES, Moment
from aftercheck_worker.text.numerals.unit import NEXT, WORD, blank

_SEASON: Final = re.compile(r"(?<![\w.,-])((?:1[5-9]|20)\d\d)[-/](\d\d)(?![\d-])")
_ISO: Final = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_DMY: Final = re.compile(r"(?<![\d.])(\d{1,2})[./](\d{1,2})[./](\d{4}|\d{2})(?![\d])")
_YEAR: Final = re.compile(
    r"(?<![A-Za-z\u00c0-\u04ff\d_.,/$€£-])(1[0-9]\d\d|20\d\d)(?:s\b)?(?![A-Za-z\u00c0-\u04ff\d_]|[.,]\d|\s?[%€$£])"
)
_YEAR_LEAD: Final = re.compile(
    r"(?:\b(?:in|since|from|until|till|by|of|year|before|after|during|to|and|the|w|od|do|rok|roku|przed|po|у|в|з|с|від|от|до|рік|год|після|после"
    r"|seit|jahr|jahre|bis|ab|um|vor|nach)\s+|[(/-])$",
    re.IGNORECASE,
)
_YEAR_MARK: Final = re.compile(r"\s?(?:г\.|р\.|r\.|年|roku\b|року\b|года\b|году\b|році\b)")
_CLOCK: Final = re.compile(
    r"(?<![\d:.])([01]?\d|2[0-4])[:.]([0-5]\d|0(?!\d))(?:\s?([ap])\.?m\b\.?)?(?![\d:])|(?<![\w.:])(1[0-2]|0?\d)\s?([ap])\.?m\b\.?",
    re.IGNORECASE,
)


def moments_in(text: str) -> list[Moment]:
    """Dates, years, weekdays and times of day, in order; what one rule took no other reads again."""
    out: list[Moment] = []
    taken = text

    def take(start: int, end: int, moment: Moment) -> None:
        nonlocal taken
        out.append(moment)
        if len(out) < MAX_QUANTITIES:
            spans.append((start, end))

    spans: list[tuple[int, int]] = []
    for rule, make in (
        (_ISO, _iso),
        (_DMY, _dmy),
        (_SEASON, _year_only),
        (_month_pattern(), _named),
        (_CLOCK, _clock),
        (_YEAR, _year),
    ):
        spans = []
        for found in rule.finditer(taken):
            moment = make(found)
            if moment is not None:
                take(found.start(), found.end(), moment)
        taken = blank(taken, spans)
    out += _weekday_moments(taken)
    return sorted(out, key=lambda m: m.start)


def _iso(found: re.Match[str]) -> Moment | None:
    year, month, day = (int(part) for part in found.groups())
    return _valid(found, year, month, day)


def _dmy(found: re.Match[str]) -> Moment | None:
    first, second, year = (int(part) for part in found.groups())
    year += 2000 if year < 100 else 0
    if second > 12 and first <= 12:
        first, second = second, first
    made = _valid(found, year, second, first)
    return msgspec.structs.replace(made, swapped=first <= 12) if made is not None else None


def _valid(found: re.Match[str], year: int, month: int, day: int) -> Moment | None:
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return Moment(start=found.start(), end=found.end(), year=year, month=month, day=day)


def _named(found: re.Match[str]) -> Moment | None:
    day = found.group("day") or found.group("day2")
    year = found.group("year")
    name = found.group("month")
    if (
        name.lower() in ("may", "mar", "jan", "march", "mai", "sec", "luty", "липня")
        and not day
        and not year
        and not name[:1].isupper()
    ):
        return None
    if name.lower() in ("may", "march", "mar", "jan", "dec", "sep") and not day and not year:
        return None
    if day and not 1 <= int(day) <= 31:
        return None
    return Moment(
        start=found.start(),
        end=found.end(),
        year=int(year) if year else None,
        month=_months()[name.lower()],
        day=int(day) if day else None,
    )


def _clock(found: re.Match[str]) -> Moment | None:
    hour, minute, half, hour2, half2 = found.groups()
    if hour is not None and "." in found.group() and half is None:
        return None  # 8.30 is a decimal more often than a time
    hours = int(hour or hour2)
    mark = (half or half2 or "").lower()
    hours = hours % 12 + (12 if mark == "p" else 0) if mark else hours
    return Moment(start=found.start(), end=found.end(), minute=hours * 60 + int(minute or 0))


def _year_only(found: re.Match[str]) -> Moment | None:
    """`2018-19` is a season or a school year: its first year counts."""
    return Moment(start=found.start(), end=found.end(), year=int(found.group(1)))


def _year(found: re.Match[str]) -> Moment | None:
    """A bare figure is a year after "in", "since", ..., or from 1800 on when it counts nothing ("2000 users")."""
    year, text = int(found.group(1)), found.string
    led = bool(_YEAR_LEAD.search(text[max(0, found.start() - 12) : found.start()]))
    marked = bool(_YEAR_MARK.match(text, found.end()))
    if year < 1500 and not marked:
        return None
    if not led and not marked:
        following = NEXT.match(text, found.end())
        word = following.group(1) if following else ""
        if year < 1800 or (word.islower() and word not in all_stopwords() and word not in _finite_verbs()):
            return None
    return Moment(start=found.start(), end=found.start() + 4, year=year)


def _weekday_moments(text: str) -> Iterator[Moment]:
    names = _weekdays()
    for found in WORD.finditer(text):
        number = names.get(found.group().lower())
        if number is not None:
            yield Moment(start=found.start(), end=found.end(), weekday=number)


@functools.cache
def _months() -> dict[str, int]:
    return {word: number for language in LANGUAGES for word, number in load(language).months.items()}


@functools.cache
def _weekdays() -> dict[str, int]:
    return {word: number for language in LANGUAGES for word, number in load(language).weekdays.items()}


@functools.cache
def _month_pattern() -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, _months()), key=len, reverse=True))
    return re.compile(
        rf"(?:(?<![\w.,])(?P<day>\d{{1,2}})(?:\.|st|nd|rd|th|-го)?\s+(?:of\s+)?)?\b(?P<month>{names})\b\.?"
        r"(?:\s+(?P<day2>\d{1,2})(?:st|nd|rd|th)?(?![\d:.%]))?(?:,?\s+(?P<year>1[0-9]\d\d|20\d\d)\b(?:\s?(?:roku|року|года|г\.|р\.|r\.))?)?",
        re.IGNORECASE,
    )


@functools.cache
def _finite_verbs() -> frozenset[str]:
    return frozenset(verb for language in LANGUAGES for verb in load(language).finite_verbs)
