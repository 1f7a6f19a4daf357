"""Quantities and dates in text: values in every reading, unit, tolerance, offsets. Five languages, no library.

`1,250` is 1250 or 1.25 depending on the locale; both readings are kept, and two quantities agree when any pair of
readings does. A claim may round what the evidence says, never sharpen it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from aftercheck_worker.text.language import all_stopwords
from aftercheck_worker.text.lexicon import LANGUAGES, Language, load
from aftercheck_worker.text.normalise import flat
from aftercheck_worker.text.units import CURRENCIES, EXACT, SYMBOLS, dimension, factor

Agreement = Literal["equal", "different", "incomparable"]

MAX_QUANTITIES: Final = 4000
_L: Final = r"A-Za-z\u00b5\u00c0-\u024f\u0370-\u04ff"
"""Letters of alphabets that write spaces between words: a figure may touch a Chinese character, not one of these."""

_NUMBER: Final = re.compile(
    rf"(?<![{_L}\d_.,/@#])(?<![^\d\s(]-)(?P<currency>US\$|[$€£¥₴₽]|(?:USD|EUR|GBP|PLN|UAH|RUB|CHF)(?=\s?\d))?\s?"
    r"(?P<sign>-(?=\d))?(?P<number>\d{1,3}(?:(?P<group>[ ,.'])\d{3})(?:(?P=group)\d{3})*(?:[.,]\d{1,9})?(?!\d)"
    r"|\d+(?:[.,]\d+)?)"
    rf"(?P<tail>%|°[CF]?|(?:st|nd|rd|th|-?го|-?й|-?та|-?ий)(?![{_L}\d_])|[{_L}]{{1,6}}(?:/[{_L}]{{1,3}})?(?![{_L}\d_]))?"
    rf"(?![{_L}\d_]|[.,:]\d)"
)
_IDENTIFIER: Final = re.compile(
    r"https?://\S+|\b[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}|(?<![\d.])\d+(?:\.\d+){3,}|\bv\d+(?:\.\d+)+"
    rf"|(?<![{_L}])[{_L}]+[-_]?\d[{_L}\d_-]*"
    r"|\+\d[\d ()-]{7,30}\d|(?<!\w)/[\w./-]{2,}"
)
_RANGE: Final = re.compile(r"\s?(?:-|to|bis|do|до|по)\s?")
_SPLIT_GROUP: Final = re.compile(r"(?<=\d)(), (\d00)(?!\d)")
"""`30, 000`, as detokenised corpora write it."""
_OUT_OF: Final = re.compile(r"(?:\bout of|\bvon|\bна|\bz|\bиз|\bіз|/)\s*$", re.IGNORECASE)
_AGE: Final = re.compile(r"[\s-]?olds?\b")
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
_WORD: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_NEXT: Final = re.compile(r"[\s-]{0,2}([^\W\d_]+|%|°[CF]?|[€$£₴₽])(\.)?")
_APPROX: Final = re.compile(
    r"(?:\b(?:about|around|approximately|roughly|nearly|almost|circa|some|over|under|ca\.?|etwa|rund|ungefähr|knapp|około|ok\.|prawie|blisko|приблизно|близько|майже|около|примерно|почти)|[~≈])\s*$",
    re.IGNORECASE,
)


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A number in a text.

    Attributes:
        start, end: offsets, unit included.
        values: every reading, in the base unit of `dimension`.
        steps: for each reading the half step of its last digit, in the base unit.
        unit: canonical unit or currency code, `` when there is none.
        noun: lower-case word after the number ("3 users"), `` when a unit or nothing follows.
        approximate: "about", "ca.", ... stands before it.
        ordinal: "3rd", "21st".
    """

    start: int
    end: int
    values: tuple[float, ...]
    steps: tuple[float, ...]
    unit: str = ""
    noun: str = ""
    approximate: bool = False
    ordinal: bool = False

    @property
    def dimension(self) -> str:
        """Dimension of the unit: two quantities of different dimensions cannot be compared."""
        return dimension(self.unit)


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """A date or time of day, as fine as it was written; None is "not said". `minute` counts from midnight."""

    start: int
    end: int
    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    minute: int | None = None
    swapped: bool = False


class Numerals(msgspec.Struct, frozen=True, kw_only=True):
    """Everything numeric in a text, in order."""

    quantities: tuple[Quantity, ...] = ()
    moments: tuple[Moment, ...] = ()


def read(text: str, language: Language = "other") -> Numerals:
    """Find quantities, dates and times of day. Identifiers (A1, v2.3.1, URLs, phone numbers) are left out.

    Args:
        text: any text; only its first 4,000 quantities are read.
        language: for spelled numbers; figures, units and months are read in all five languages.
    """
    plain = _SPLIT_GROUP.sub(r"\1,\2 ", flat(text))
    masked = _blank(
        plain, [found.span() for found in _IDENTIFIER.finditer(plain) if not _is_unit_like(found.group())]
    )
    moments = _moments(masked)
    rest = _blank(masked, [(m.start, m.end) for m in moments])
    quantities = _ranged(rest, list(_figures(rest, language)))
    taken = [(q.start, q.end) for q in quantities]
    quantities += _spelled(_blank(rest, taken), language)
    return Numerals(quantities=tuple(sorted(quantities, key=lambda q: q.start)), moments=tuple(moments))


def compare(claim: Quantity, evidence: Quantity) -> Agreement:
    """Say whether the evidence's quantity is the claim's.

    `equal`: a reading of each within half a step of the claim's last digit (5 % when either is approximate).
    `incomparable`: other dimensions, or an ordinal against a cardinal.
    """
    if claim.ordinal != evidence.ordinal:
        return "incomparable"
    if claim.unit and evidence.unit and claim.dimension != evidence.dimension:
        return "incomparable"
    loose = 0.05 if claim.approximate or evidence.approximate else 0.0
    bare = not claim.unit or not evidence.unit
    for value, step in zip(claim.values, claim.steps, strict=True):
        for other in evidence.values:
            ours = value / factor(claim.unit) if bare else value
            theirs = other / factor(evidence.unit) if bare else other
            slack = step / factor(claim.unit) if bare else step
            if abs(ours - theirs) <= max(
                slack if abs(ours) >= 10 * slack else 1e-9, loose * abs(theirs), 1e-9 * abs(theirs)
            ):
                return "equal"
    return "different"


def agree(claim: Moment, evidence: Moment) -> Agreement:
    """Say whether two moments agree in every part that both state; `incomparable` when they share none."""
    shared = False
    for ours, theirs in (
        (claim.year, evidence.year),
        (claim.minute, evidence.minute),
    ):
        if ours is not None and theirs is not None:
            shared = True
            if ours != theirs:
                return "different"
    days = [(claim.month, claim.day)] + ([(claim.day, claim.month)] if claim.swapped else [])
    others = [(evidence.month, evidence.day)] + ([(evidence.day, evidence.month)] if evidence.swapped else [])
    if claim.month is not None and evidence.month is not None:
        shared = True
        if not any(m == n and (d is None or e is None or d == e) for m, d in days for n, e in others):
            return "different"
    if not shared and claim.weekday is not None and evidence.weekday is not None:
        return "equal" if claim.weekday == evidence.weekday else "different"
    return "equal" if shared else "incomparable"


def _blank(text: str, spans: list[tuple[int, int]]) -> str:
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


def _is_unit_like(text: str) -> bool:
    return text.startswith("/") and text.count("/") == 1


def _figures(text: str, language: Language) -> Iterator[Quantity]:
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


def _ranged(text: str, found: list[Quantity]) -> list[Quantity]:
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
    scale, unit, noun, end = _following(text, end, scale, unit)
    sign = -1.0 if found.group("sign") else 1.0
    size = scale * factor(unit)
    return Quantity(
        start=start,
        end=end,
        values=tuple(sign * value * size for value, _ in readings),
        steps=tuple(step * size for _, step in readings),
        unit=unit,
        noun=noun,
        approximate=bool(_APPROX.search(text[max(0, start - 16) : start])),
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
    unit = _unit(tail)
    if unit:
        return 1.0, unit
    scale = _scales().get(low)
    return (scale, "") if scale is not None and len(low) > 1 else (0.0, "")


def _following(text: str, end: int, scale: float, unit: str) -> tuple[float, str, str, int]:
    """Read scale word, unit and counted noun behind a figure."""
    for _ in range(2):
        found = _NEXT.match(text, end)
        if found is None:
            break
        word = found.group(1)
        size = _scales().get(word.lower()) if len(word) > 1 else None
        if size is not None:
            scale, end = scale * size, found.end(1) + (1 if found.group(2) and len(word) <= 4 else 0)
            continue
        own = "" if unit else (CURRENCIES.get(word) or _unit(word, spaced=True))
        if own:
            aged = _AGE.match(text, found.end(1)) if own == "yr" else None
            return scale, "age" if aged else own, "", aged.end() if aged else found.end(1)
        return scale, unit, "" if word.lower() in all_stopwords() else word.lower(), end
    return scale, unit, "", end


def _unit(word: str, *, spaced: bool = False) -> str:
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
def _scales() -> dict[str, float]:
    return {
        word: size for language in LANGUAGES for word, size in load(language).scales.items() if word not in ("k", "m")
    }


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


def _moments(text: str) -> list[Moment]:
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
        taken = _blank(taken, spans)
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
        following = _NEXT.match(text, found.end())
        word = following.group(1) if following else ""
        if year < 1800 or (word.islower() and word not in all_stopwords() and word not in _finite_verbs()):
            return None
    return Moment(start=found.start(), end=found.start() + 4, year=year)


@functools.cache
def _finite_verbs() -> frozenset[str]:
    return frozenset(verb for language in LANGUAGES for verb in load(language).finite_verbs)


def _weekday_moments(text: str) -> Iterator[Moment]:
    names = _weekdays()
    for found in _WORD.finditer(text):
        number = names.get(found.group().lower())
        if number is not None:
            yield Moment(start=found.start(), end=found.end(), weekday=number)


def _spelled(text: str, language: Language) -> list[Quantity]:
    """Read number words: `twenty-five`, `two hundred thousand`, `fünfundzwanzig`, `dwadzieścia pięć`."""
    own = load(language)
    out: list[Quantity] = []
    run: list[tuple[int, int, float, bool]] = []
    for found in _WORD.finditer(text):
        parts = _number_words(found.group().lower(), own.numbers, own.scales)
        glued = bool(run) and text[run[-1][1] : found.start()].strip() in ("", "-")
        if parts and (glued or not run):
            run += [(found.start(), found.end(), value, scale) for value, scale in parts]
            continue
        _flush(text, run, out)
        run = [(found.start(), found.end(), value, scale) for value, scale in parts]
    _flush(text, run, out)
    return out


def _number_words(word: str, numbers: dict[str, float], scales: dict[str, float]) -> list[tuple[float, bool]]:
    if word in numbers:
        return [(numbers[word], False)]
    if word in scales and len(word) > 1:
        return [(scales[word], True)]
    if "-" in word:
        pieces = [_number_words(piece, numbers, scales) for piece in word.split("-")]
        return [part for piece in pieces for part in piece] if all(pieces) else []
    head, joint, tail = word.partition("und")  # German: fünfundzwanzig
    units = {**numbers, "ein": 1.0}
    if joint and head in units and tail in numbers and numbers[tail] >= 20:
        return [(units[head] + numbers[tail], False)]
    return []


def _flush(text: str, run: list[tuple[int, int, float, bool]], out: list[Quantity]) -> None:
    if not run:
        return
    total, current = 0.0, 0.0
    for _, _, value, is_scale in run:
        if not is_scale:
            current += value
        elif value >= 1000:
            total, current = total + max(current, 1.0) * value, 0.0
        else:
            current = max(current, 1.0) * value
    value = total + current
    start, end = run[0][0], run[-1][1]
    only_scale = all(scale for *_, scale in run)
    scale, unit, noun, stop = _following(text, end, 1.0, "")
    if (value <= 1 and not unit) or only_scale:
        return
    size = scale * factor(unit)
    out.append(
        Quantity(
            start=start, end=stop, values=(value * size,), steps=(0.5 * size,), unit=unit, noun=noun,
            approximate=bool(_APPROX.search(text[max(0, start - 16) : start])),
        )
    )  # fmt: skip
