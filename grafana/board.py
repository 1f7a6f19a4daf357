"""What a dashboard is made of, as values."""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["lines", "stacked", "number", "bars", "table"]


class Query(msgspec.Struct, frozen=True):
    """One PromQL expression and how its series are called.

    Attributes:
        expr: may use `$app`, `$environment`, `$__rate_interval` and `$__range`.
        legend: Grafana's template over labels; "" shows all labels.
    """

    expr: str
    legend: str = ""


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """One panel.

    Attributes:
        description: what it says, and what it does not; shown behind the panel's (i).
        unit: Grafana's unit id, e.g. percentunit, s, short.
        limits: lower and upper end of the axis, None where it follows the data.
        line: a horizontal threshold.
        link: series have the label `app` and lead to its answers on our pages.
        x: label that is the x axis of `bars`.
        width: columns of 24.
    """

    title: str
    queries: tuple[Query, ...]
    description: str
    kind: Kind = "lines"
    unit: str = "short"
    limits: tuple[float | None, float | None] = (None, None)
    line: float | None = None
    link: bool = False
    x: str = ""
    width: int = 8


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


class Dashboard(msgspec.Struct, frozen=True, kw_only=True):
    """One dashboard; `uid` is what alerts and bookmarks hold, so it never changes."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]
    since: str = "now-3h"
