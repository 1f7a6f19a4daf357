"""Values that text can state: quantities and moments, and when two of them agree."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from aftercheck_worker.text.units import dimension, factor

Agreement = Literal["equal", "different", "incomparable"]

MAX_QUANTITIES: Final = 4000


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
