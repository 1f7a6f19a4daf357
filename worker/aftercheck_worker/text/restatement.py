"""Values of a claim, written as its evidence writes them: "336 hours" becomes the "14 days" of the source.

A cross-encoder reads letters, not values: "on 1964-02-01" beside "on February 1, 1964" looks to it like another date.
What is equal by the rules of `numerals` may be written alike without changing what the claim says; all the rest of
the claim stays for the model to judge. Only exact equality counts, so that nothing is rounded or sharpened here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from aftercheck_worker.text.language import detect
from aftercheck_worker.text.numerals import Moment, Numerals, Quantity, agree, compare, read


def restated(claim: str, premise: str) -> str:
    """Return the claim with its values in the premise's writing, where both state the same value.

    Args:
        claim: plain text.
        premise: the evidence window that it is tested against.

    Returns:
        The claim itself when it has no value, or writes all of them as the premise does.
    """
    own = _read(claim)
    low = premise.lower()
    values: list[Quantity | Moment] = [*own.quantities, *own.moments]
    foreign = [value for value in values if _text(claim, value).lower() not in low]
    if not foreign:
        return claim
    stated = _read(premise)
    out = claim
    for value in sorted(foreign, key=lambda v: -v.start):
        same = next(_equals(value, stated), None)
        if same is not None:
            out = out[: value.start] + _text(premise, same) + out[value.end :]
    return out


@lru_cache(maxsize=4096)
def _read(text: str) -> Numerals:
    return read(text, detect(text))


def _text(text: str, value: Quantity | Moment) -> str:
    return text[value.start : value.end]


def _equals(own: Quantity | Moment, stated: Numerals) -> Iterator[Quantity | Moment]:
    if isinstance(own, Quantity):
        for quantity in stated.quantities:
            if _same_quantity(own, quantity):
                yield quantity
    else:
        for moment in stated.moments:
            if _parts(own) == _parts(moment) and agree(own, moment) == "equal":
                yield moment


def _same_quantity(own: Quantity, other: Quantity) -> bool:
    """Equal without rounding, a unit on both sides or on neither, and the same noun where both have one."""
    if own.approximate or other.approximate or bool(own.unit) != bool(other.unit):
        return False
    if compare(own, other) != "equal" or compare(other, own) != "equal":
        return False
    if not any(abs(a - b) <= 1e-9 * abs(b) for a in own.values for b in other.values):
        return False
    return bool(own.unit) or not own.noun or not other.noun or own.noun[:4] == other.noun[:4]


def _parts(moment: Moment) -> tuple[bool, ...]:
    return tuple(part is not None for part in (moment.year, moment.month, moment.day, moment.weekday, moment.minute))
