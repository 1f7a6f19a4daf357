"""False pages of the shipped rule over 30 simulated days, and the time to fire."""

from __future__ import annotations

import statistics
import sys
from typing import Final

import numpy as np

from aftercheck_worker.oncall import simulation

MEANS: Final = (0.90, 0.88, 0.85)
SPREADS: Final = (0.20, 0.30)
TRAFFIC: Final = (0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 10.0, 30.0, 100.0)
"""Evaluations per minute."""
RUNS: Final = 6
"""Simulations of 30 days per cell."""


def table() -> dict[str, float]:
    """Print the table to stderr; return the mean number of false pages in 30 days per cell."""
    found: dict[str, float] = {}
    rows = ["", f"false pages in 30 days (mean of {RUNS} runs of 30 days), by evaluations per minute"]
    rows.append(f"{'mean':>5} {'sd':>4} " + "".join(f"{traffic:>7g}" for traffic in TRAFFIC))
    for mean in MEANS:
        for spread in SPREADS:
            cells = [
                statistics.fmean(
                    simulation.false_pages(1000 * run + int(10 * traffic), traffic, mean, spread)
                    for run in range(RUNS)
                )
                for traffic in TRAFFIC
            ]
            keys = (f"alert.false_pages_30d.{mean:.2f}_{spread:.2f}_{traffic:g}" for traffic in TRAFFIC)
            found |= dict(zip(keys, cells, strict=True))
            rows.append(f"{mean:5.2f} {spread:4.2f} " + "".join(f"{cell:7.2f}" for cell in cells))
    rows += ["", "seconds from a drop .92 -> .5 to the alert, 200 runs (scrape and group wait add up to 10 s)"]
    for traffic in (3.0, 6.0, 30.0, 60.0, 100.0):
        times = np.array([simulation.time_to_fire(seed, traffic) for seed in range(200)])
        median, late = np.nanmedian(times), np.nanpercentile(times, 95)
        found |= {f"alert.fire_s.{traffic:g}": float(median), f"alert.fire_p95_s.{traffic:g}": float(late)}
        rows.append(f"  {traffic:5g} a minute: median {median:.0f} s, p95 {late:.0f} s")
    print("\n".join(rows), file=sys.stderr)
    return found
