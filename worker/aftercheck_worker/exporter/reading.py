"""One reading of the stores: everything that a scrape shows, as values (no connection, no metric library)."""

from __future__ import annotations

import msgspec


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the `total` table: a counter that only grows."""

    metric: str
    app: str
    environment: str
    model: str
    prompt_version: str
    evaluator: str
    origin: str
    key: str
    value: float


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Production answers finalised in the last five minutes, late ones left out (R27, R53).

    Attributes:
        evaluations: raw number of answers with an outcome grounded or ungrounded; at least 1.
        faithfulness: mean weighted by 1 / sampling probability, 0..1.
        hallucination: weighted share of hallucinated answers, 0..1.
    """

    app: str
    environment: str
    evaluator: str
    quality: str
    evaluations: int
    faithfulness: float
    hallucination: float


class JudgedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Judged production answers finalised in the last five minutes, by criterion and method (R21).

    Attributes:
        evaluations: raw number of answers; at least 1.
        mean: weighted by 1 / (sampling x judging probability), 0..1.
    """

    app: str
    environment: str
    evaluator: str
    quality: str
    criterion: str
    method: str
    evaluations: int
    mean: float


class DesignEffect(msgspec.Struct, frozen=True, kw_only=True):
    """Variance of the mean with sessions as clusters, over that of independent answers; 1 or more."""

    app: str
    environment: str
    evaluator: str
    quality: str
    effect: float


class SamePassages(msgspec.Struct, frozen=True, kw_only=True):
    """Share (0..1] of different questions that got the most frequent set of passages."""

    app: str
    environment: str
    share: float


class Slope(msgspec.Struct, frozen=True, kw_only=True):
    """A fatigue slope with the upper end of its clustered 99 % interval, None below 50 sessions (R30)."""

    app: str
    measure: str
    against: str
    slope: float | None
    upper: float | None
    sessions: int


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One point of a fatigue curve: mean of a measure at a step, differences between sessions taken out."""

    app: str
    measure: str
    against: str
    step: str
    mean: float


class Fatigue(msgspec.Struct, frozen=True, kw_only=True):
    """Slopes and curves of all apps."""

    slopes: tuple[Slope, ...] = ()
    steps: tuple[Step, ...] = ()


class EvaluatorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A bounded name and the sha256 behind it."""

    name: str
    version: str
    quality: str


class StoreReading(msgspec.Struct, frozen=True, kw_only=True):
    """What Postgres says. Times are seconds since the epoch, ages seconds."""

    totals: tuple[Total, ...] = ()
    windows: tuple[Window, ...] = ()
    judged: tuple[JudgedWindow, ...] = ()
    design_effects: tuple[DesignEffect, ...] = ()
    same_passages: tuple[SamePassages, ...] = ()
    fatigue: Fatigue = Fatigue()
    evaluators: tuple[EvaluatorInfo, ...] = ()
    in_flight: dict[str, int] = {}
    oldest_in_flight: float | None = None
    oldest_judging: float | None = None
    last_change: str = ""
    last_finalised: float | None = None
    dead_letters_open: int = 0


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: entries that wait, and the age of the oldest in seconds where it is known."""

    name: str
    depth: int
    oldest: float | None = None


class QueueReading(msgspec.Struct, frozen=True, kw_only=True):
    """What Redis says.

    Attributes:
        queues: stream, due traces, and the Celery lists.
        mark: changes whenever intake reads an entry or a worker takes a message.
        cold_horizon: age in seconds of the oldest unsampled trace that is still kept, None when none is.
        canaries: outcomes of the judge's newest canaries, True = right.
        refused: traces that a full stream refused, by app and reason, since the hash began.
    """

    queues: tuple[Queue, ...] = ()
    mark: tuple[str, ...] = ()
    cold_horizon: float | None = None
    canaries: tuple[bool, ...] = ()
    refused: dict[tuple[str, str], int] = {}


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One refresh. A store that did not answer is None, and its series are absent from the scrape."""

    at: float
    seconds: float
    store: StoreReading | None = None
    queues: QueueReading | None = None
