"""Numbers and dates: found, rounded, derivable, contradicted by an aligned line, or nowhere (R15).

That a number is nowhere only caps the claim (measured precision .62 as a hallucination signal). It convicts only
where a line about the same thing states another value of the same unit.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from aftercheck_worker.stages.checks.alignment import Alignment, Line, Subject
from aftercheck_worker.stages.checks.finding import Finding
from aftercheck_worker.text.content import content
from aftercheck_worker.text.numerals import Agreement, Moment, Quantity, agree, compare

ANCHOR: Final = 0.65
MARGIN: Final = 0.15
MAX_PER_LINE: Final = 3
MAX_DERIVED: Final = 12
WINDOW: Final = 12
_ENUMERATOR: Final = re.compile(r"^\W*(?:[^\W\d_]{1,12} )?\d{1,3}[:.)](?=\s)")


Value = Quantity | Moment
Compare = Callable[[Value], Agreement]
Row = tuple[float, Line, list[Value]]


def check(subject: Subject, alignment: Alignment) -> Iterator[Finding]:
    """Yield findings about the claim's quantities and dates."""
    if subject.claim.type == "code":
        return
    lines = [(alignment.overlap(subject, line), line) for _, line in alignment.candidates(subject)]
    listed = _ENUMERATOR.match(subject.own)
    for quantity in subject.numerals.quantities:
        if listed is not None and quantity.start < listed.end():
            continue
        if not any(compare(quantity, other) == "equal" for other in subject.known.quantities):
            yield from _quantity(quantity, subject, alignment, lines)
    for moment in subject.numerals.moments:
        if not any(agree(moment, other) == "equal" for other in subject.known.moments):
            yield from _moment(moment, subject, alignment, lines)


def _quantity(
    own: Quantity, subject: Subject, alignment: Alignment, lines: Sequence[tuple[float, Line]]
) -> Iterator[Finding]:
    rows: list[Row] = [
        (share, line, [q for q in line.numerals.quantities if _comparable(own, q)]) for share, line in lines
    ]

    def test(other: Value) -> Agreement:
        return compare(own, other) if isinstance(other, Quantity) else "incomparable"

    finding = _judge(subject, alignment, rows, test)
    if finding is not None and finding.effect != "support" and _is_year(own.values, lines):
        return
    if finding is not None and finding.effect != "support" and _derivable(own, lines):
        finding = Finding(kind="number", effect="escalate", reason="number_derived", strength=0.5)
    if finding is not None:
        yield finding


def _moment(
    own: Moment, subject: Subject, alignment: Alignment, lines: Sequence[tuple[float, Line]]
) -> Iterator[Finding]:
    if own.weekday is not None and own.year is None and _weekday_follows(own, subject):
        return
    rows: list[Row] = [
        (share, line, [m for m in line.numerals.moments if agree(own, m) != "incomparable"]) for share, line in lines
    ]

    def test(other: Value) -> Agreement:
        return agree(own, other) if isinstance(other, Moment) else "incomparable"

    finding = _judge(subject, alignment, rows, test)
    if finding is not None and finding.effect == "cap" and own.month is None and _is_count(own.year, lines):
        return
    if (
        finding is not None
        and finding.effect == "support"
        and len(subject.terms) <= 1
        and not subject.names
        and own.day is not None
    ):
        yield Finding(kind="value", effect="support", reason="date_stated", evidence=finding.evidence)
    elif finding is not None:
        reason = finding.reason.replace("number", "date")
        yield Finding(
            kind="date",
            effect=finding.effect,
            status=finding.status,
            reason=reason,
            evidence=finding.evidence,
            strength=finding.strength,
        )


def _judge(subject: Subject, alignment: Alignment, rows: Sequence[Row], test: Compare) -> Finding | None:
    """Weigh the best line that agrees against the best aligned line that differs."""
    matches = [(share, line) for share, line, found in rows if any(test(q) == "equal" for q in found)]
    said: list[Value] = [*subject.numerals.quantities, *subject.numerals.moments]
    rivals: list[Row] = []
    for share, line, values in rows:
        if not _broken(line, alignment):
            rivals.append((share, line, [value for value in values if not _said(value, said)]))
    others = [
        (_anchor(subject, line, found, share), line)
        for share, line, found in rivals
        if found and len(found) <= MAX_PER_LINE and all(test(q) == "different" for q in found)
    ]
    match = max(matches, key=lambda row: row[0], default=None)
    other = max(others, key=lambda row: row[0], default=None)
    if subject.negated and match is None:
        return None  # "it did not close in 2020" needs no source that says 2020
    aligned = other is not None and other[0] >= ANCHOR and _enough(subject, other[1])
    twin = None if match is None else _twin(match, others, subject)
    if match is not None and twin is not None:
        spans = (alignment.cite(match[1], match[0]), alignment.cite(twin, match[0]))
        return Finding(kind="number", effect="cap", status="unclear", reason="conflicting_sources", evidence=spans)
    if match is not None and (not aligned or other is None or match[0] >= other[0] - MARGIN):
        if aligned and other is not None and _conflict(subject, match, other):
            spans = (alignment.cite(match[1], match[0]), alignment.cite(other[1], other[0]))
            return Finding(
                kind="number", effect="cap", status="unclear", reason="conflicting_sources", evidence=spans
            )
        return Finding(
            kind="number",
            effect="support",
            reason="number_match",
            evidence=(alignment.cite(match[1], match[0]),),
            strength=match[0],
        )
    if aligned and other is not None:
        return Finding(
            kind="number",
            effect="convict",
            status="contradicted",
            reason="number_mismatch",
            evidence=(alignment.cite(other[1], other[0]),),
            strength=other[0],
        )
    compared = any(found for _, _, found in rows)
    reason = "number_not_in_evidence" if compared else "number_without_counterpart"
    return Finding(kind="number", effect="cap", status="not_found", reason=reason)


def _broken(line: Line, alignment: Alignment) -> bool:
    """The line ends inside a figure ("$ 1." of "$ 1. 7 million")."""
    following = alignment.sources[line.source].text[line.end : line.end + 4].lstrip()
    return line.text[-2:-1].isdigit() and following[:1].isdigit()


def _said(value: Value, said: Sequence[Value]) -> bool:
    """The claim states this value as well, so it is not a rival of the one in question."""
    for own in said:
        if (
            isinstance(own, Quantity)
            and isinstance(value, Quantity)
            and own.unit == value.unit
            and compare(own, value) == "equal"
        ):
            return True
        if isinstance(own, Moment) and isinstance(value, Moment) and agree(own, value) == "equal":
            return True
    return False


def _anchor(subject: Subject, line: Line, found: Sequence[Value], share: float) -> float:
    """Share of the claim's terms within twelve words of a differing value, with the penalty of `overlap` kept."""
    full = len(subject.terms & line.terms) / max(1, len(subject.terms))
    if full == 0:
        return 0.0
    best = 0.0
    for value in found:
        before = " ".join(line.text[: value.start].split()[-WINDOW:])
        after = " ".join(line.text[value.end :].split()[:WINDOW])
        near = content(f"{before} {after}", subject.language) | (
            line.terms & subject.terms if len(line.text.split()) <= 2 * WINDOW else frozenset[str]()
        )
        best = max(best, len(subject.terms & near) / max(1, len(subject.terms)))
    return best * share / full


def _enough(subject: Subject, line: Line) -> bool:
    shared = len(subject.terms & line.terms)
    return shared >= 2 or (shared >= 1 and len(subject.terms) <= 2)


def _conflict(subject: Subject, match: tuple[float, Line], other: tuple[float, Line]) -> bool:
    """Two sources give two values, and nothing in the claim or the question says which of them is meant."""
    if match[1].source == other[1].source or abs(match[0] - other[0]) > MARGIN:
        return False
    about = subject.names | subject.inherited
    return not (about & (match[1].names ^ other[1].names))


def _twin(match: tuple[float, Line], others: Sequence[tuple[float, Line]], subject: Subject) -> Line | None:
    """Another source's line of the same wording with another value ("AMER: 20 days" beside "EMEA: 30 days")."""
    about = subject.names | subject.inherited | subject.asked_names
    mine = match[1]
    for _, line in others:
        left, right = mine.terms - _stems(mine.names), line.terms - _stems(line.names)
        same = len(left & right) / max(1, len(left | right))
        if (
            line.source != mine.source
            and left & right & (subject.terms | subject.asked)
            and same >= 0.75
            and not about & (mine.names ^ line.names)
        ):
            return line
    return None


def _stems(names: frozenset[str]) -> frozenset[str]:
    return frozenset(name[:5] for name in names)


def _comparable(own: Quantity, other: Quantity) -> bool:
    if compare(own, other) == "incomparable":
        return False
    if compare(own, other) == "equal":
        return True
    if bool(own.unit) != bool(other.unit):
        return False
    return bool(own.unit) or not own.noun or not other.noun or own.noun[:4] == other.noun[:4]


def _derivable(own: Quantity, lines: Sequence[tuple[float, Line]]) -> bool:
    """Is the value a sum, difference, ratio or percentage of two numbers in the best lines?"""
    near: list[Quantity] = [q for _, line in lines[:8] for q in line.numerals.quantities][:MAX_DERIVED]
    same = [q for q in near if q.dimension == own.dimension]
    for left, right in itertools.permutations(same, 2):
        a, b = left.values[0], right.values[0]
        if any(
            abs(v - r) <= max(s, 1e-9) for v, s in zip(own.values, own.steps, strict=True) for r in (a + b, a - b)
        ):
            return True
    if len(same) > 2 and any(abs(v - sum(q.values[0] for q in same)) <= 1e-9 * abs(v) for v in own.values):
        return True
    if own.unit in ("%", ""):
        for left, right in itertools.permutations(near, 2):
            if left.dimension == right.dimension and right.values[0]:
                ratio = left.values[0] / right.values[0]
                results = (100 * ratio, 100 * (ratio - 1), 100 * (1 - ratio)) if own.unit == "%" else (ratio,)
                if left.values[0] != right.values[0] and any(abs(own.values[0] - r) <= own.steps[0] for r in results):
                    return True
    return False


def _is_year(values: Sequence[float], lines: Sequence[tuple[float, Line]]) -> bool:
    """A bare figure that a line states as a year."""
    return any(m.year in values for _, line in lines for m in line.numerals.moments if m.year is not None)


def _is_count(year: int | None, lines: Sequence[tuple[float, Line]]) -> bool:
    """A bare year that a line states as a figure without a unit."""
    return any(year in q.values for _, line in lines for q in line.numerals.quantities if not q.unit)


def _weekday_follows(own: Moment, subject: Subject) -> bool:
    """The weekday follows from a full date in the same claim ("Tuesday, 8 September 2026")."""
    for moment in subject.numerals.moments:
        if moment.year and moment.month and moment.day:
            try:
                return dt.date(moment.year, moment.month, moment.day).isoweekday() == own.weekday
            except ValueError:
                return False
    return False
