"""What an alert and a recording rule are made of."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["critical", "error", "warning", "info"]
"""PagerDuty's own words: Events v2 refuses any other."""


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A value computed before the alerts of its group."""

    record: str
    expr: str


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One alert (conventions U42).

    Attributes:
        hold: how long the expression must hold, as Prometheus writes it.
        keep: how long the alert stays after the expression ends, so that a value at the threshold is one page.
        page: True goes to PagerDuty, False to the ticket receiver.
        enabled: False ships commented out of the Prometheus rules; only the literal rule of R27 is.
        dashboard: uid of the Grafana dashboard.
        meaning, causes, actions: the runbook, in this order.
    """

    name: str
    expr: str
    severity: Severity
    summary: str
    description: str
    meaning: str
    causes: tuple[str, ...]
    actions: tuple[str, ...]
    dashboard: str
    hold: str = "0s"
    keep: str = "0s"
    page: bool = False
    enabled: bool = True
    requirement: str = ""
