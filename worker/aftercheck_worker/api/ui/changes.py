"""What changed between two windows: rates with intervals, and which differences are beyond chance. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final, Literal

import msgspec

from aftercheck_worker.feedback import Rate, rate
from aftercheck_worker.storage.incident import Change

ALPHA: Final = 0.05
ORDER: Final = ("app", "model", "prompt version", "retriever version", "environment", "evaluator")
ENOUGH: Final = 5
"""Answers in each window below which nothing is called worse or better: score intervals are too short there."""
Sign = Literal["worse", "better", ""]


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One value of one dimension in both windows.

    Attributes:
        now, before: hallucination rates with 95 % Wilson intervals.
        difference: now minus before, -1..1; a value that is new is compared with all answers before.
        sign: `worse` or `better` when the difference is beyond chance, all comparisons of the page taken together.
        new, gone: it was judged in one window only.
    """

    change: Change
    now: Rate
    before: Rate
    difference: Rate
    sign: Sign
    new: bool
    gone: bool


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one dimension."""

    dimension: str
    values: list[Compared]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The whole page. `whole` is None without a judged answer; `suspects` are worse beyond chance, new ones first."""

    whole: Compared | None
    suspects: list[Compared]
    groups: list[Group]


def compare(found: Sequence[Change]) -> Comparison:
    """Compare every value of every dimension.

    The level of a single comparison is 5 % divided by their number (Bonferroni): a page with forty prompt versions
    must not show two as guilty by chance.
    """
    whole = next((one for one in found if one.dimension == "all"), None)
    if whole is None:
        return Comparison(whole=None, suspects=[], groups=[])
    rows = [one for one in found if one.dimension != "all"]
    plain, z = _z(ALPHA), _z(ALPHA / max(1, len(rows)))
    groups = [
        Group(dimension=name, values=[_compared(one, whole, z) for one in rows if one.dimension == name])
        for name in ORDER
    ]
    worse = [one for group in groups for one in group.values if one.sign == "worse"]
    return Comparison(
        whole=_compared(whole, whole, plain),
        suspects=sorted(
            (one for one in worse if _stands_out(one, whole, plain)),
            key=lambda one: (not one.new, -(one.difference.low or 0.0)),
        ),
        groups=[group for group in groups if group.values],
    )


def difference(bad: int, judged: int, bad_before: int, judged_before: int, *, z: float) -> Rate:
    """Return the difference of two shares with Newcombe's hybrid score interval (Newcombe 1998, method 10).

    Args:
        bad: hits now.
        judged: count now; 0 gives no difference.
        bad_before: hits before.
        judged_before: count before; 0 gives no difference.
        z: half width in standard errors.
    """
    now, before = rate(bad, judged, z=z), rate(bad_before, judged_before, z=z)
    if now.value is None or before.value is None:
        return Rate(value=None, low=None, high=None)
    value = now.value - before.value
    down = math.hypot(now.value - (now.low or 0.0), (before.high or 0.0) - before.value)
    up = math.hypot((now.high or 0.0) - now.value, before.value - (before.low or 0.0))
    return Rate(value=value, low=max(-1.0, value - down), high=min(1.0, value + up))


def _compared(one: Change, whole: Change, z: float) -> Compared:
    new = bool(one.judged) and not one.judged_before
    base = whole if new else one
    found = difference(one.bad, one.judged, base.bad_before, base.judged_before, z=z)
    sign: Sign = ""
    enough = min(one.judged, base.judged_before) >= ENOUGH
    if enough and found.low is not None and found.low > 0:
        sign = "worse"
    elif enough and found.high is not None and found.high < 0:
        sign = "better"
    return Compared(
        change=one,
        now=rate(one.bad, one.judged),
        before=rate(one.bad_before, one.judged_before),
        difference=found,
        sign=sign,
        new=new and bool(whole.judged_before),
        gone=bool(one.judged_before) and not one.judged,
    )


def _stands_out(one: Compared, whole: Change, z: float) -> bool:
    """Whether a value is worse than the rest of its window too: otherwise it only repeats what the whole window says.

    A new value that has all the traffic is a suspect by being new.
    """
    change = one.change
    bad, judged = whole.bad - change.bad, whole.judged - change.judged
    if not judged:
        return one.new
    against = difference(change.bad, change.judged, bad, judged, z=z)
    return against.low is not None and against.low > 0


def _z(alpha: float) -> float:
    return NormalDist().inv_cdf(1 - alpha / 2)
