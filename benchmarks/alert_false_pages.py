"""False pages of the shipped rule over 30 simulated days, and the time to fire after a drop.

The arithmetic is that of the generated PromQL, the window sliding from scrape to scrape; a test holds it to the real
Prometheus rules. Numbers come from fixed seeds and do not depend on the machine.
"""

from __future__ import annotations

import itertools
import sys
from typing import Final

import numpy as np

from aftercheck_worker.oncall import simulation

KEYS: Final = ("alert.false_pages_", "alert.fire_")
MEANS: Final = (0.90, 0.88, 0.85)
SPREADS: Final = (0.20, 0.30)
TRAFFIC: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 60.0, 100.0)
"""Evaluations per minute. Densest where a window holds just enough answers to speak."""
DAYS: Final = 30
RUNS: Final = 20
"""Simulations of so many days per cell."""
SESSIONS: Final = 5
"""Answers in a row that share one value, in the row about sessions."""
DROPS: Final = (3.0, 6.0, 30.0, 60.0, 100.0)
TRIALS: Final = 400


def cells(mean: float, spread: float, session: int = 1, effect: float = 1.0) -> list[float]:
    """Mean number of false pages in 30 days at each traffic. The traffics of one run see the same answers."""
    pages = np.zeros((RUNS, len(TRAFFIC)))
    for run in range(RUNS):
        most = int(TRAFFIC[-1] * 60 * 24 * DAYS * 1.01)
        drawn = simulation.answers(np.random.default_rng([1, run]), most, mean, spread, session)
        for place, traffic in enumerate(TRAFFIC):
            seed = 1000 * run + place
            pages[run, place] = simulation.false_pages(seed, traffic, drawn, days=DAYS, effect=effect)
    found: list[float] = pages.mean(axis=0).tolist()
    return found


def row(label: str, values: list[float]) -> None:
    """Print one line of the table."""
    print(f"{label:<18}" + "".join(f"{value:>6.2f}" for value in values), file=sys.stderr, flush=True)


def false_pages() -> dict[str, float]:
    """One cell per mean, spread and traffic; then sessions, with and without their design effect."""
    found: dict[str, float] = {}
    print(f"\nfalse pages in {DAYS} days, mean of {RUNS} runs, by evaluations per minute", file=sys.stderr)
    print(f"{'mean, sd':<18}" + "".join(f"{traffic:>6g}" for traffic in TRAFFIC), file=sys.stderr)
    for mean, spread in itertools.product(MEANS, SPREADS):
        values = cells(mean, spread)
        keys = (f"alert.false_pages_30d.{mean:.2f}_{spread:.2f}_{traffic:g}" for traffic in TRAFFIC)
        found |= dict(zip(keys, values, strict=True))
        row(f"{mean:.2f}, {spread:.2f}", values)
    for name, effect in (("ignored", 1.0), ("counted", float(SESSIONS))):
        values = cells(0.85, 0.30, session=SESSIONS, effect=effect)
        keys = (f"alert.false_pages_sessions_{name}_30d.0.85_0.30_{traffic:g}" for traffic in TRAFFIC)
        found |= dict(zip(keys, values, strict=True))
        row(f"sessions {name}", values)
    return found


def time_to_fire() -> dict[str, float]:
    """Median and 95th percentile of the seconds from a drop to the alert."""
    found: dict[str, float] = {}
    print(f"\nseconds from a drop .92 -> .5 to the alert, {TRIALS} trials", file=sys.stderr)
    for traffic in DROPS:
        times = np.array([simulation.time_to_fire(seed, traffic) for seed in range(TRIALS)])
        median, late = float(np.nanmedian(times)), float(np.nanpercentile(times, 95))
        found |= {f"alert.fire_s.{traffic:g}": median, f"alert.fire_p95_s.{traffic:g}": late}
        print(f"{traffic:5g} a minute: median {median:.0f}, p95 {late:.0f}", file=sys.stderr, flush=True)
    return found


def run() -> dict[str, float]:
    """Simulate and print both tables."""
    found = false_pages()
    worst = max(value for key, value in found.items() if key.startswith("alert.false_pages_30d."))
    print(f"worst cell: {worst:.2f} (bar: below 1)", file=sys.stderr)
    return {**found, "alert.false_pages_worst_30d": worst, **time_to_fire()}
