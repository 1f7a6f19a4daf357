"""The page of `faithfulness` in numpy: false pages per 30 days, and time to fire.

Same arithmetic as the generated PromQL over scrapes every `STEP` seconds, `increase()` with its extrapolation
included; a test holds it to promtool. One simulated evaluation of the rule per scrape.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from aftercheck_worker.oncall import faithfulness

STEP: Final = 5.0
"""Seconds between two scrapes and between two evaluations of the rule."""
SAMPLES: Final = {window: int(seconds / STEP) for window, seconds in faithfulness.WINDOWS.items()}

Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """Running totals at each scrape, shape (scrapes,): answers, sum and sum of squares of faithfulness."""

    count: Numbers
    sum: Numbers
    squares: Numbers


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """Sum and sum of squares of the first n answers, shape (answers + 1,), before anybody knows when they come."""

    sum: Numbers
    squares: Numbers


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """What the recording rules say at each scrape; NaN where they say nothing."""

    count: Numbers
    mean: Numbers
    upper: Numbers


def draw(chance: np.random.Generator, mean: float, sd: float, size: int) -> Numbers:
    """Faithfulness of answers: beta with this mean and sd, 0 or 1 where only two points have such a spread."""
    scale = mean * (1 - mean) / sd**2 - 1
    if scale < 1e-9:
        return (chance.random(size) < mean).astype(np.float64)
    return chance.beta(mean * scale, (1 - mean) * scale, size)


def answers(chance: np.random.Generator, size: int, mean: float, sd: float, session: int = 1) -> Answers:
    """Draw answers. With `session` > 1 each group of so many in a row shares one value."""
    values = np.repeat(draw(chance, mean, sd, size // session + 1), session)[:size]
    zero = np.zeros(1)
    return Answers(
        sum=np.concatenate([zero, np.cumsum(values)]), squares=np.concatenate([zero, np.cumsum(values * values)])
    )


def arrive(arrivals: NDArray[np.int64], drawn: Answers) -> Counters:
    """Let the answers come, so many at each scrape.

    Raises:
        IndexError: more arrive than were drawn.
    """
    ends = np.cumsum(arrivals)
    return Counters(count=ends.astype(np.float64), sum=drawn.sum[ends], squares=drawn.squares[ends])


def arrivals(chance: np.random.Generator, per_minute: float, seconds: float) -> NDArray[np.int64]:
    """Poisson numbers of answers between two scrapes."""
    return chance.poisson(per_minute * STEP / 60, int(seconds / STEP))


def traffic(
    chance: np.random.Generator, per_minute: float, seconds: float, mean: float, sd: float, session: int = 1
) -> Counters:
    """Poisson answers of one kind."""
    coming = arrivals(chance, per_minute, seconds)
    return arrive(coming, answers(chance, int(coming.sum()), mean, sd, session))


def increase(counter: Numbers, window: str) -> Numbers:
    """Growth over a window as PromQL counts it. The counter was scraped long before and never reset.

    A window holds `samples` points, the first one STEP after its left edge: the difference is extrapolated to the
    whole window. Scrapes lie between evaluations, so that the left edge itself is no sample.
    """
    samples = SAMPLES[window]
    grown = np.full(counter.shape, np.nan)
    grown[samples - 1 :] = counter[samples - 1 :] - counter[: counter.size - samples + 1]
    return grown * (samples / (samples - 1))


def window(counters: Counters, name: str, effect: float = 1.0) -> Window:
    """The recording rules of one window, with the design effect as a constant."""
    count = increase(counters.count, name)
    with np.errstate(divide="ignore", invalid="ignore"):
        count = np.where(count > 0, count, np.nan)
        mean = increase(counters.sum, name) / count
        spread = np.maximum(increase(counters.squares, name) / count - mean**2, 0) / np.maximum(count - 1, 1)
        upper = mean + faithfulness.Z * np.sqrt(spread * effect)
    return Window(count=count, mean=mean, upper=upper)


def active(counters: Counters, effect: float = 1.0) -> Flags:
    """Where the alert's expression is true."""
    low = _low(counters, "5m", effect)
    long = np.nonzero(_low(counters, "30m", effect) & ~low)[0]
    if long.size:
        count, total = _grown(counters.count, "5m", long), _grown(counters.sum, "5m", long)
        fine = (count >= faithfulness.MINIMUM) & (total >= faithfulness.THRESHOLD * count)
        low[long] = ~fine
    return low


def _low(counters: Counters, name: str, effect: float) -> Flags:
    """As `window(...).upper < THRESHOLD`, with enough independent answers. The mean alone settles most scrapes."""
    first = SAMPLES[name] - 1
    found = np.zeros(counters.count.shape, dtype=bool)
    scrapes = np.arange(first, counters.count.size)
    count = _grown(counters.count, name, scrapes)
    total = _grown(counters.sum, name, scrapes)
    few = (count >= faithfulness.MINIMUM * effect) & (total < faithfulness.THRESHOLD * count)
    scrapes, count, mean = scrapes[few], count[few], total[few] / count[few]
    spread = np.maximum(_grown(counters.squares, name, scrapes) / count - mean**2, 0) / np.maximum(count - 1, 1)
    found[scrapes] = mean + faithfulness.Z * np.sqrt(spread * effect) < faithfulness.THRESHOLD
    return found


def _grown(counter: Numbers, name: str, scrapes: NDArray[np.intp]) -> Numbers:
    """`increase` at some scrapes, all of them past the first window."""
    samples = SAMPLES[name]
    return (counter[scrapes] - counter[scrapes - samples + 1]) * (samples / (samples - 1))


def fired(flags: Flags) -> NDArray[np.intp]:
    """Scrapes at which a new page starts: true for HOLD seconds, and not within KEEP seconds of the page before."""
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    starts, ends = np.nonzero(edges == 1)[0], np.nonzero(edges == -1)[0]
    hold = int(faithfulness.HOLD_SECONDS / STEP)
    long = ends - starts > hold
    starts, ends = starts[long], ends[long]
    apart = np.ones(starts.size, dtype=bool)
    apart[1:] = starts[1:] + hold - ends[:-1] > faithfulness.KEEP_SECONDS / STEP
    return starts[apart] + hold


def false_pages(seed: int, per_minute: float, drawn: Answers, days: float = 30, effect: float = 1.0) -> int:
    """Pages of a healthy service whose answers are `drawn`."""
    coming = arrivals(np.random.default_rng(seed), per_minute, days * 86_400)
    return int(fired(active(arrive(coming, drawn), effect)).size)


def time_to_fire(
    seed: int, per_minute: float, before: tuple[float, float] = (0.92, 0.2), after: tuple[float, float] = (0.5, 0.35)
) -> float:
    """Seconds from a drop (mean, sd) to the alert, NaN within two hours. Without scrape and group wait."""
    chance = np.random.default_rng(seed)
    healthy, bad = traffic(chance, per_minute, 3600, *before), traffic(chance, per_minute, 7200, *after)
    whole = Counters(
        count=np.concatenate([healthy.count, bad.count + healthy.count[-1]]),
        sum=np.concatenate([healthy.sum, bad.sum + healthy.sum[-1]]),
        squares=np.concatenate([healthy.squares, bad.squares + healthy.squares[-1]]),
    )
    pages = fired(active(whole))
    later = pages[pages >= healthy.count.size]
    return float((later[0] - healthy.count.size + 1) * STEP) if later.size else float("nan")
