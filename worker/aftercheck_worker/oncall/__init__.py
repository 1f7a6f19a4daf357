"""Semantic on-call: the alert rules, declared once (R27, R28, R54).

`catalogue` holds every alert, `faithfulness` the arithmetic of the page on falling faithfulness. From them
`deploy/generate.py` writes Prometheus rules, Grafana-managed alerts, the alert reference and runbook skeletons.
"""

from __future__ import annotations

from aftercheck_worker.oncall.catalogue import ALERTS, RECORDINGS
from aftercheck_worker.oncall.rule import Alert, Recording

__all__ = ("ALERTS", "RECORDINGS", "Alert", "Recording")
