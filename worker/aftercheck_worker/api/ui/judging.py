"""The judge's work on one answer as its page shows it: minimum and median of its repeats (R24, R47)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from aftercheck_schemas import Judgement
from aftercheck_schemas.evaluation import ClaimJudgement

FAITHFULNESS: Final = "faithfulness"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the judgement table. `body` is the whole judgement in one row and empty in the others."""

    criterion: str
    repeat: int
    score: float | None
    body: Mapping[str, object]
    late: bool


class Repeats(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of one criterion over its repeats, 0..1 each, never empty."""

    criterion: str
    scores: list[float]

    @property
    def low(self) -> float:
        """The minimum."""
        return min(self.scores)

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.scores)


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge said.

    Attributes:
        judgement: None when only its scores can be read: another release wrote it.
        repeats: one per criterion that was measured.
        late: it came after the answer was final and changed nothing.
    """

    judgement: Judgement | None
    repeats: list[Repeats]
    late: bool

    def of(self, claim_id: str) -> ClaimJudgement | None:
        """The judge's word on a claim, None when it was not asked or gave none."""
        claims = self.judgement.claims if self.judgement else ()
        return next((one for one in claims if one.claim_id == claim_id), None)


def read(stored: Sequence[object]) -> Opinion | None:
    """Put the stored rows of an evaluation together; None when no judge was asked."""
    rows = msgspec.convert(list(stored), list[Row])
    measured: dict[str, list[float]] = {}
    for row in rows:
        if row.score is not None:
            measured.setdefault(row.criterion, []).append(row.score)
    bodies = [row.body for row in rows if row.body and row.criterion == FAITHFULNESS]
    if not measured and not bodies:
        return None
    return Opinion(
        judgement=_judgement(bodies[0]) if bodies else None,
        repeats=[Repeats(criterion=name, scores=scores) for name, scores in measured.items()],
        late=any(row.late for row in rows),
    )


def _judgement(body: Mapping[str, object]) -> Judgement | None:
    try:
        return msgspec.convert(body, Judgement)
    except msgspec.ValidationError:  # written by a newer release: its scores stand in their own column
        return None
