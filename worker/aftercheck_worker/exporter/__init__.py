"""The exporter: running totals and five-minute gauges for Prometheus, served from memory (R26, R27).

`store` and `queues` read, `exposition` renders, `refresher` is the timer, `health` judges, `server` answers.
Every metric is declared in `metrics`.
"""

from __future__ import annotations

from aftercheck_worker.exporter.process import run
from aftercheck_worker.exporter.refresher import Source

__all__ = ("Source", "run")
