"""Numbers, percentages, years and dates: another value against another way to write the same value."""

from __future__ import annotations

import re
from random import Random

from .edit import Context, Edit, replace, words

_NUMBER = re.compile(
    r"(?<![\w.,$€£/:&-])([$€£]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?![\w/:&]|[.,]\d|-\w| th\b)(\s?%| percent\b)?"
)
_SMALL = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_TENS = words("zero ten twenty thirty forty fifty sixty seventy eighty ninety")
_WORD = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|first|second|third|"
    r"fourth|fifth|once(?= (?:a|an|per|every|in)\b)|twice(?= (?:a|an|per|every|in)\b))\b"
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")
_MONTHS = words("January February March April May June July August September October November December")
_MONTH = re.compile(r"\b(" + "|".join(_MONTHS) + r")\b")
_DATE = re.compile(r"\b(" + "|".join(_MONTHS) + r") (\d{1,2}), (\d{4})\b")
_DATE_UK = re.compile(r"\b(\d{1,2}) (" + "|".join(_MONTHS) + r") (\d{4})\b")


def in_words(value: int) -> str:
    """A whole number below one hundred in words."""
    if value < 20:
        return _SMALL[value]
    return _TENS[value // 10] + (f"-{_SMALL[value % 10]}" if value % 10 else "")


def _is_year(match: re.Match[str]) -> bool:
    return not match[1] and not match[3] and not match[4] and "," not in match[2] and 1400 <= int(match[2]) <= 2100


def _kind(match: re.Match[str]) -> tuple[bool, bool, bool, int]:
    digits = len(match[2].replace(",", ""))
    return _is_year(match), bool(match[1]), bool(match[4]), min(digits, 2) if not _is_year(match) else 4


def _shifted(match: re.Match[str], random: Random) -> str:
    whole = int(match[2].replace(",", ""))
    if _is_year(match):
        return str(whole + random.choice([-20, -10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 20]))
    if match[3]:
        places = len(match[3]) - 1
        value = float(f"{whole}{match[3]}") * random.choice([0.5, 0.7, 0.9, 1.1, 1.3, 1.5, 2, 10])
        return f"{value:.{places}f}"
    if whole < 12:
        return str(max(1, whole + random.choice([-3, -2, -1, 1, 2, 3, 4])))
    value = int(whole * random.choice([0.5, 0.8, 0.9, 1.1, 1.2, 1.5, 2, 10])) + random.choice([0, 1])
    return f"{value:,}" if "," in match[2] else str(value)


def _other(match: re.Match[str], context: Context, random: Random) -> tuple[str, int]:
    pool = [m for m in _NUMBER.finditer(context.text) if _kind(m) == _kind(match) and m[0] != match[0]]
    if pool and random.random() < 0.6:
        chosen = random.choice(pool)
        return chosen[2] + (chosen[3] or ""), 1
    return _shifted(match, random), 1


_NO_HEDGE = re.compile(
    r"(?:\b(?:an?|the|nearly|almost|about|around|roughly|approximately|over|than|under|least|most|to|season|chapter|"
    r"episode|part|age of|only|exactly|number|No\.?)|[(-]) ?$",
    re.IGNORECASE,
)
_LOWER = re.compile(r"\b(?:more than|at least|over|no fewer than|above|exceed(?:s|ed|ing)?) $", re.IGNORECASE)
_UPPER = re.compile(r"\b(?:less than|fewer than|at most|under|below|up to(?: about)?|no more than) $", re.IGNORECASE)


def _rewritten(claim: str, match: re.Match[str], random: Random) -> str:
    whole, core = int(match[2].replace(",", "")), match[2] + (match[3] or "")
    options: list[str] = []
    if match[4]:
        tail = " percent" if "%" in match[4] else "%"
        options.append(f"{match[1]}{core}{tail}")
    if _is_year(match):
        before = claim[: match.start()]
        if re.search(r"\b[Ii]n $", before):
            return before + random.choice(["the year ", ""]) + claim[match.start() :]
        return claim
    if not match[1] and not match[3] and 1 < whole < 100:
        options.append(in_words(whole) + (" percent" if match[4] else ""))
    if "," in match[2]:
        options.append(match[0].replace(",", ""))
        if whole % 100_000 == 0 and whole >= 1_000_000:
            options.append(f"{match[1]}{whole / 1_000_000:g} million")
        elif whole % 100 == 0 and whole < 1_000_000 and not match[1]:
            options.append(f"{whole / 1000:g} thousand")
    elif whole >= 1000 and not match[3]:
        options.append(f"{match[1]}{whole:,}{match[4] or ''}")
    if not _NO_HEDGE.search(claim[: match.start()]) and (not options or random.random() < 0.25):
        options.append(f"{random.choice(['about', 'around', 'roughly'])} {match[0].strip()}")
    return claim[: match.start()] + random.choice(options) + claim[match.end() :] if options else claim


def _in_date(claim: str, match: re.Match[str]) -> bool:
    """A day beside a month: `date` changes it, and nobody writes `January five`."""
    month = "|".join(_MONTHS)
    return len(match[2]) <= 2 and bool(
        re.search(rf"\b(?:{month}|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec)\.? $", claim[: match.start()])
        or re.match(rf" (?:{month})\b", claim[match.end() :])
    )


def _follows(before: str, after: str, match: re.Match[str], value: str) -> bool:
    """The other value is implied by the true one: `more than 5` by `more than 7`, `after 1995` by `after 1992`."""
    old, new = (float(text.replace(",", "")) for text in (match[2] + (match[3] or ""), value))
    if _LOWER.search(before):
        return new < old
    if after.startswith(" or more"):
        return True
    if _UPPER.search(before):
        return new > old or bool(re.search(r"up to \w* ?$", before))
    return _is_year(match) and bool(re.search(r"\b(?:after|before) $", before, re.IGNORECASE))


def number(claim: str, context: Context, random: Random) -> Edit | None:
    """Another number of the same kind (60 % from the document) against the same number rewritten."""
    found = [m for m in _NUMBER.finditer(claim) if not _in_date(claim, m)]
    if not found:
        return _number_word(claim, random)
    match = random.choice(found)
    value, contradiction = _other(match, context, random)
    if value == match[2] + (match[3] or "") or _follows(claim[: match.start()], claim[match.end() :], match, value):
        return None
    new = f"{match[1]}{value}{match[4] or ''}"
    if match[0] == new or new in claim:
        return None
    negative, span = replace(claim, match.start(), match.end(), new)
    positive = _rewritten(claim, match, random)
    if random.random() < 0.4:  # the rewritten form must not itself tell the label
        rematch = _NUMBER.search(negative, span[0])
        if rematch and rematch.start() == span[0]:
            changed = _rewritten(negative, rematch, random)
            end = span[1] + len(changed) - len(negative)
            negative, span = changed, (span[0], max(span[0] + 1, end))
    return Edit(negative, [span], contradiction, positive)


def _number_word(claim: str, random: Random) -> Edit | None:
    found = list(_WORD.finditer(claim))
    if not found:
        return None
    match = random.choice(found)
    word = match[1]
    if word in _ORDINALS:
        new = random.choice([o for o in _ORDINALS if o != word])
    elif word in ("once", "twice"):
        new = "twice" if word == "once" else "once"
    else:
        new = random.choice(
            [w for w in ("two", "three", "four", "five", "six", "seven", "nine", "twelve") if w != word]
        )
    negative, span = replace(claim, match.start(), match.end(), new)
    positive = claim
    if word in _SMALL:
        positive = replace(claim, match.start(), match.end(), str(_SMALL.index(word)))[0]
        if new in _SMALL and random.random() < 0.5:
            negative, span = replace(claim, match.start(), match.end(), str(_SMALL.index(new)))
    return Edit(negative, [span], 1, positive)


def date(claim: str, context: Context, random: Random) -> Edit | None:
    """Another month or day against the same date in the other order."""
    full = _DATE.search(claim) or _DATE_UK.search(claim)
    if full is None:
        match = _MONTH.search(claim)
        if (
            match is None
            or match[1] == "May"
            or (match[1] == "March" and claim[match.end() : match.end() + 2] != " 1")
        ):
            return None
        pool = [m for m in set(_MONTH.findall(context.text)) if m != match[1] and m not in claim]
        new = random.choice(pool or [m for m in _MONTHS if m not in claim])
        negative, span = replace(claim, match.start(), match.end(), new)
        return Edit(negative, [span], 1, claim)
    american = full.re is _DATE
    month, day, year = (full[1], full[2], full[3]) if american else (full[2], full[1], full[3])
    swapped = f"{day} {month} {year}" if american else f"{month} {day}, {year}"
    part = random.random()
    if part < 0.4:
        month = random.choice([m for m in _MONTHS if m != month and (m != "February" or int(day) <= 28)])
    elif part < 0.7:
        day = str((int(day) + random.randint(1, 26)) % 28 + 1)
    else:
        year = str(int(year) + random.choice([-10, -3, -2, -1, 1, 2, 3, 10]))
    new = f"{day} {month} {year}" if american == (random.random() < 0.7) else f"{month} {day}, {year}"
    negative, span = replace(claim, full.start(), full.end(), new)
    if f"{month} {day}, {year}" in full[0] or f"{day} {month} {year}" in full[0]:
        return None
    return Edit(negative, [span], 1, replace(claim, full.start(), full.end(), swapped)[0])
