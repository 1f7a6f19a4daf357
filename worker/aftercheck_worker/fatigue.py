"""Fatigue (R30): does quality fall from step to step inside a session? Pure statistics. A pattern, not a cause.

Two traps, both measured (`python -m benchmarks fatigue`):

- Pooled over sessions, hard sessions that are simply longer look like fatigue. So every slope is taken inside the
  sessions: measure and step minus their session means.
- Over whole sessions even that slope rejects most of the time when users leave after a bad answer, because the last
  turn is then a bad one by selection. So only the first K turns of sessions with at least K + 1 turns are read: each
  of these turns was survived, hence all K are selected alike. The slope is that of the users who stayed.

Errors are clustered by session (CR1, t with sessions - 1 degrees of freedom), and below 50 sessions nothing is said.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Final, Literal

import msgspec

from aftercheck_worker.storage.sessions import SessionAnswer

FIRST_TURNS: Final = 4
"""K. Sessions with at least K + 1 turns are read."""
MIN_SESSIONS: Final = 50
CONFIDENCE: Final = 0.99
"""Nine slopes per app are looked at: 99 % keeps false patterns rare."""
TOKENS: Final = 1000
"""Unit of the context size."""
SINGULAR: Final = 1e-9

Measure = Literal["faithfulness", "citation_precision", "self_consistency"]
Against = Literal["turn", "call_index", "context_tokens"]
MEASURES: Final[tuple[Measure, ...]] = ("faithfulness", "citation_precision", "self_consistency")
AGAINST: Final[tuple[Against, ...]] = ("turn", "call_index", "context_tokens")
BINS: Final = (1, 2, 4, 8, 16, 32, 64)
"""Upper ends of the context-size steps of a curve, in 1,000 tokens."""


class Slope(msgspec.Struct, frozen=True, kw_only=True):
    """Change of a measure per step, inside sessions.

    Attributes:
        sessions: sessions that tell something: two measured answers with different steps.
        slope: per turn, per call, or per 1,000 context tokens; None with too few sessions or no spread.
        low, high: ends of the interval at `CONFIDENCE`, clustered by session.
        partial: the same with the other steps held equal; None where they cannot be told apart.
    """

    app: str
    measure: Measure
    against: Against
    sessions: int
    answers: int
    slope: float | None = None
    low: float | None = None
    high: float | None = None
    partial: float | None = None

    @property
    def falls(self) -> bool:
        """The whole interval is below 0."""
        return self.high is not None and self.high < 0


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """Mean of a measure at one step, differences between sessions taken out; a picture, not a test.

    Attributes:
        step: `1`, `2`, ... for turns, `01`, ... for calls, `01-02k` and so on for context sizes.
        mean: session differences removed, so it may leave 0..1 by a hair.
        half: half width of the 95 % interval, clustered by session.
    """

    step: str
    mean: float
    half: float
    answers: int


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """The points of one measure of one app against one kind of step, in order."""

    app: str
    measure: Measure
    against: Against
    points: tuple[Point, ...]


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is said of the apps that were read."""

    turns: int
    minimum: int
    slopes: tuple[Slope, ...]
    curves: tuple[Curve, ...]


class _Row(msgspec.Struct, frozen=True):
    """A measured answer: its value and its steps in the order of AGAINST, NaN where unknown."""

    y: float
    steps: tuple[float, float, float]


Sessions = dict[str, list[_Row]]


def report(
    answers: Iterable[SessionAnswer],
    *,
    turns: int = FIRST_TURNS,
    minimum: int = MIN_SESSIONS,
    partial: bool = True,
) -> Report:
    """Compute all slopes and curves.

    Args:
        answers: of any apps, in any order.
        turns: K; at least 2.
        minimum: sessions below which no slope is given.
        partial: the slopes with the other steps held equal too; they cost more than all the rest.
    """
    apps: dict[str, list[SessionAnswer]] = defaultdict(list)
    for answer in first_turns(answers, turns):
        apps[answer.app].append(answer)
    slopes: list[Slope] = []
    curves: list[Curve] = []
    for app, mine in sorted(apps.items()):
        for measure in MEASURES:
            sessions = _sessions(mine, measure)
            for against in AGAINST:
                found = _slope(app, measure, against, sessions, minimum)
                if partial and found.slope is not None:
                    found = msgspec.structs.replace(found, partial=_partial(sessions, AGAINST.index(against)))
                slopes.append(found)
                if found.slope is not None:
                    curves.append(_curve(app, measure, against, sessions))
    return Report(turns=turns, minimum=minimum, slopes=tuple(slopes), curves=tuple(curves))


def first_turns(answers: Iterable[SessionAnswer], turns: int) -> list[SessionAnswer]:
    """Keep the first `turns` turns of sessions that went on after them."""
    sessions: dict[tuple[str, str], list[SessionAnswer]] = defaultdict(list)
    for answer in answers:
        sessions[answer.app, answer.session].append(answer)
    return [
        answer
        for session in sessions.values()
        if max(answer.turn for answer in session) > turns
        for answer in session
        if 1 <= answer.turn <= turns
    ]


def slope(sessions: Sequence[Sequence[tuple[float, float]]], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the within-session slope and half the width of its interval, clustered by session.

    Args:
        sessions: per session its (step, value) pairs; at least two sessions, each with two different steps.
        confidence: of the interval, below 1.
    """
    moments = [_moments(session) for session in sessions]
    square = math.fsum(xx for xx, _ in moments)
    estimate = math.fsum(xy for _, xy in moments) / square
    # Steps and values are centred inside each session, so its score is sum(x y) - slope sum(x x).
    meat = math.fsum((xy - estimate * xx) ** 2 for xx, xy in moments)
    count = len(sessions)
    error = math.sqrt(meat * count / (count - 1)) / square
    return estimate, error * student(confidence, count - 1)


def _moments(session: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Sums of squares and products around the session's means."""
    size = len(session)
    x = sum(step for step, _ in session) / size
    y = sum(value for _, value in session) / size
    return sum((step - x) ** 2 for step, _ in session), sum((step - x) * (value - y) for step, value in session)


def student(confidence: float, degrees: int) -> float:
    """Two-sided quantile of Student's t by its Cornish-Fisher expansion: off by less than 1e-4 from 20 degrees on."""
    z, n = NormalDist().inv_cdf((1 + confidence) / 2), float(degrees)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3


def _sessions(answers: Iterable[SessionAnswer], measure: Measure) -> Sessions:
    found: Sessions = defaultdict(list)
    for answer in answers:
        value: float | None = getattr(answer, measure)
        if value is not None:
            tokens = answer.context_tokens / TOKENS if answer.context_tokens > 0 else math.nan
            found[answer.session].append(_Row(value, (float(answer.turn), float(answer.call_index), tokens)))
    return found


def _slope(app: str, measure: Measure, against: Against, sessions: Sessions, minimum: int) -> Slope:
    pairs = _pairs(sessions, AGAINST.index(against))
    count, answers = len(pairs), sum(map(len, pairs))
    if count < max(2, minimum):
        return Slope(app=app, measure=measure, against=against, sessions=count, answers=answers)
    estimate, half = slope(pairs)
    return Slope(
        app=app,
        measure=measure,
        against=against,
        sessions=count,
        answers=answers,
        slope=estimate,
        low=estimate - half,
        high=estimate + half,
    )


def _pairs(sessions: Sessions, place: int) -> list[list[tuple[float, float]]]:
    """(step, value) of the sessions in which the step varies; the others tell nothing."""
    found: list[list[tuple[float, float]]] = []
    for rows in sessions.values():
        pairs = [(row.steps[place], row.y) for row in rows if not math.isnan(row.steps[place])]
        if len({step for step, _ in pairs}) > 1:
            found.append(pairs)
    return found


def _partial(sessions: Sessions, place: int) -> float | None:
    """Slope with all steps that vary inside sessions entered together."""
    varying = [n for n in range(len(AGAINST)) if n == place or _pairs(sessions, n)]
    if len(varying) == 1:
        return None
    varying.sort(key=lambda n: n != place)
    try:
        return _fit(_centred(sessions, tuple(varying)))
    except ZeroDivisionError:
        return None


_Centred = list[list[tuple[list[float], float]]]
"""Per session: steps and value, both minus the session's means."""


def _centred(sessions: Sessions, places: tuple[int, ...]) -> _Centred:
    """Take the session means out; sessions in which the first step does not vary tell nothing and are left out."""
    found: _Centred = []
    for rows in sessions.values():
        whole = [row for row in rows if not any(math.isnan(row.steps[place]) for place in places)]
        if len({row.steps[places[0]] for row in whole}) < 2:
            continue
        means = [sum(row.steps[place] for row in whole) / len(whole) for place in places]
        level = sum(row.y for row in whole) / len(whole)
        found.append(
            [([row.steps[p] - m for p, m in zip(places, means, strict=True)], row.y - level) for row in whole]
        )
    return found


def _fit(sessions: _Centred) -> float:
    """Ordinary least squares over all steps at once; the first coefficient.

    Raises:
        ZeroDivisionError: the steps cannot be told apart.
    """
    size = len(sessions[0][0][0]) if sessions else 0
    rows = [row for session in sessions for row in session]
    gram = [[math.fsum(x[a] * x[b] for x, _ in rows) for b in range(size)] for a in range(size)]
    return _solve(gram, [math.fsum(x[a] * y for x, y in rows) for a in range(size)])[0]


def _solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Gaussian elimination with pivots for at most 3 unknowns.

    Raises:
        ZeroDivisionError: the matrix is singular.
    """
    size = len(right)
    work = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    scale = max((abs(value) for row in matrix for value in row), default=0.0)
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(work[row][column]))
        if abs(work[pivot][column]) <= SINGULAR * scale:
            raise ZeroDivisionError("the steps cannot be told apart")
        work[column], work[pivot] = work[pivot], work[column]
        for row in range(size):
            if row != column:
                factor = work[row][column] / work[column][column]
                work[row] = [a - factor * b for a, b in zip(work[row], work[column], strict=True)]
    if not size:
        raise ZeroDivisionError("there is no step")
    return [work[row][size] / work[row][row] for row in range(size)]


def _curve(app: str, measure: Measure, against: Against, sessions: Sessions) -> Curve:
    place = AGAINST.index(against)
    rows = [row for session in sessions.values() for row in session if not math.isnan(row.steps[place])]
    level = sum(row.y for row in rows) / len(rows)
    steps: dict[float, list[list[float]]] = defaultdict(list)
    for session in sessions.values():
        mine = [row for row in session if not math.isnan(row.steps[place])]
        mean = sum(row.y for row in mine) / len(mine) if mine else 0.0
        inside: dict[float, list[float]] = defaultdict(list)
        for row in mine:
            inside[_bin(against, row.steps[place])].append(row.y - mean + level)
        for step, values in inside.items():
            steps[step].append(values)
    points = [_point(_name(against, step), clusters) for step, clusters in sorted(steps.items())]
    return Curve(app=app, measure=measure, against=against, points=tuple(p for p in points if p is not None))


def _point(step: str, clusters: Sequence[Sequence[float]]) -> Point | None:
    """None for a step that fewer than ten sessions reached."""
    if len(clusters) < 10:
        return None
    count = sum(map(len, clusters))
    mean = math.fsum(value for cluster in clusters for value in cluster) / count
    spread = math.fsum(math.fsum(value - mean for value in cluster) ** 2 for cluster in clusters)
    error = math.sqrt(spread * len(clusters) / (len(clusters) - 1)) / count
    return Point(step=step, mean=mean, half=error * student(0.95, len(clusters) - 1), answers=count)


def _bin(against: Against, step: float) -> float:
    if against == "context_tokens":
        return next((float(end) for end in BINS if step < end), math.inf)
    return min(step, 16.0)


def _name(against: Against, step: float) -> str:
    """Name of a step; names sort as their steps do, because a label has no other order."""
    if against == "context_tokens":
        place = BINS.index(int(step)) if math.isfinite(step) else len(BINS)
        low = BINS[place - 1] if place else 0
        return f"{low:02d}-{BINS[place]:02d}k" if place < len(BINS) else f"{low}k+"
    if against == "call_index":
        return f"{step:02.0f}" if step < 16 else "16+"
    return f"{step:g}" if step < 16 else "16+"
