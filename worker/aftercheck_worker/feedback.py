"""What users' thumbs say of the evaluator: the four cells judge x user with their intervals (R6). Pure.

Silence and an implicit click prove nothing (R46): only explicit thumbs count, and who gives them is not random, so
these are rates among those who spoke.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

Z: Final = 1.959964
"""Two-sided 95 %."""


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of answers with a thumb, of one app and evaluator version.

    Attributes:
        grounded_down: the evaluator said grounded, the user said no: a gap of the evaluator, or of the question.
    """

    app: str
    evaluator_version: str
    evaluator: str = ""
    grounded_up: int = 0
    grounded_down: int = 0
    ungrounded_up: int = 0
    ungrounded_down: int = 0

    @property
    def answers(self) -> int:
        """All four cells."""
        return self.grounded_up + self.grounded_down + self.ungrounded_up + self.ungrounded_down

    @property
    def agreement(self) -> Rate:
        """Share of answers of which both say the same."""
        return rate(self.grounded_up + self.ungrounded_down, self.answers)

    @property
    def gap(self) -> Rate:
        """Share of grounded answers that users rejected."""
        return rate(self.grounded_down, self.grounded_up + self.grounded_down)

    @property
    def overcalled(self) -> Rate:
        """Share of ungrounded answers that users liked: evidence that was missing, or an error nobody noticed."""
        return rate(self.ungrounded_up, self.ungrounded_up + self.ungrounded_down)

    def share(self, hits: int) -> Rate:
        """Share of a cell among all four."""
        return rate(hits, self.answers)


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A share, a difference or a correlation with its interval; all None where nothing was counted."""

    value: float | None
    low: float | None
    high: float | None


def rate(hits: int, count: int, *, z: float = Z) -> Rate:
    """Return hits / count with its Wilson score interval (Wilson 1927).

    Args:
        hits: 0..count.
        count: 0 gives no rate.
        z: half width in standard errors; 95 % unless told.
    """
    if not count:
        return Rate(value=None, low=None, high=None)
    share, square = hits / count, z * z
    middle = (share + square / (2 * count)) / (1 + square / count)
    half = z * math.sqrt(share * (1 - share) / count + square / (4 * count * count)) / (1 + square / count)
    return Rate(value=share, low=max(0.0, middle - half), high=min(1.0, middle + half))


ENOUGH: Final = 10
"""Answers below which no correlation is told: Fisher's interval would hold nearly everything."""


def correlation(value: float | None, count: int) -> Rate:
    """Return a correlation with its 95 % interval by Fisher's z (Fisher 1921), approximate for a thumb.

    Args:
        value: Pearson's r, -1..1; None where one side is constant.
        count: pairs; below `ENOUGH` there is none.

    Returns:
        -1..1 each.
    """
    if value is None or count < ENOUGH:
        return Rate(value=None, low=None, high=None)
    middle, half = math.atanh(max(-0.999999, min(0.999999, value))), Z / math.sqrt(count - 3)
    return Rate(value=value, low=math.tanh(middle - half), high=math.tanh(middle + half))
