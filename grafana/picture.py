"""Draws a dashboard's panels from a live Prometheus, for the documentation: no Grafana server is at hand here.

The expressions are the dashboards' own; the drawing is matplotlib's, so it shows what the data look like, not what
Grafana looks like.
"""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import msgspec
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from grafana.board import Dashboard, Panel, Query

COLUMNS: Final = 3
STEP: Final = 5
MOST_NAMES: Final = 8
MISSING: Final = "nothing measured"


class Series(msgspec.Struct, frozen=True):
    """One line: its name and its points (seconds since the epoch, value)."""

    name: str
    points: list[tuple[float, float]]


def draw(
    board: Dashboard, prometheus: str, end: float, minutes: float, path: Path, titles: Sequence[str] = ()
) -> None:
    """Write the panels as one PNG.

    Args:
        board: whose panels.
        prometheus: base URL.
        end: last moment, seconds since the epoch.
        minutes: how far back.
        path: where the PNG goes.
        titles: only these panels, in their order; all of them by default.

    Raises:
        OSError: Prometheus does not answer.
    """
    mpl.use("agg")
    panels = [panel for row in board.rows for panel in row.panels if not titles or panel.title in titles]
    rows = -(-len(panels) // COLUMNS)
    figure = Figure(figsize=(4.6 * COLUMNS, 2.7 * rows), dpi=80, layout="constrained")
    figure.suptitle(f"{board.title}: the dashboard's own expressions, drawn from a live Prometheus", fontsize=11)
    grid = figure.subplots(rows, COLUMNS, squeeze=False)
    for place, panel in enumerate(panels):
        _panel(grid[place // COLUMNS][place % COLUMNS], panel, prometheus, (end - 60 * minutes, end))
    for place in range(len(panels), rows * COLUMNS):
        grid[place // COLUMNS][place % COLUMNS].axis("off")
    figure.savefig(path, metadata={"Software": ""})


def _panel(axes: Axes, panel: Panel, prometheus: str, span: tuple[float, float]) -> None:
    axes.set_title(panel.title, fontsize=9, loc="left")
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, alpha=0.3)
    found = [
        one for query in panel.queries for one in read(prometheus, query, span, instant=bool(panel.x), x=panel.x)
    ]
    if panel.line is not None:
        axes.axhline(panel.line, color="0.4", linestyle="--", linewidth=1)
    if not any(one.points for one in found):
        axes.text(0.5, 0.5, MISSING, transform=axes.transAxes, ha="center", color="0.4", fontsize=8)
    elif panel.x:
        _bars(axes, found)
    elif panel.kind == "stacked":
        _stack(axes, found)
    else:
        for one in found:
            axes.plot([_day(at) for at, _ in one.points], [v for _, v in one.points], label=one.name, linewidth=1.5)
        _times(axes)
    low, high = panel.limits
    if low is not None:  # after the drawing: a limit that is set ends the scaling by the data
        axes.set_ylim(bottom=low)
    if high is not None:
        axes.set_ylim(top=high * 1.02)
    if 0 < len(found) <= MOST_NAMES and not panel.x:
        axes.legend(fontsize=6, loc="best")


def _bars(axes: Axes, found: Sequence[Series]) -> None:
    apps = sorted({one.name.split("\n")[0] for one in found})
    steps = sorted({one.name.split("\n")[1] for one in found})
    for number, app in enumerate(apps):
        values = {one.name.split("\n")[1]: one.points[0][1] for one in found if one.name.split("\n")[0] == app}
        places = [steps.index(step) + number * 0.8 / len(apps) for step in values]
        axes.bar(places, list(values.values()), width=0.75 / len(apps), label=app)
    axes.set_xticks([n + 0.4 - 0.4 / len(apps) for n in range(len(steps))], steps)
    axes.legend(fontsize=6, loc="lower left")


def _stack(axes: Axes, found: Sequence[Series]) -> None:
    moments = sorted({at for one in found for at, _ in one.points})
    values = [[dict(one.points).get(at, 0.0) for at in moments] for one in found]
    axes.stackplot([_day(at) for at in moments], values, labels=[one.name for one in found], alpha=0.7)
    _times(axes)


def _times(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(dates.DateFormatter("%H:%M"))  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(dates.AutoDateLocator(maxticks=6))  # type: ignore[no-untyped-call]


def _day(at: float) -> float:
    return at / 86_400


def read(prometheus: str, query: Query, span: tuple[float, float], *, instant: bool, x: str = "") -> list[Series]:
    """Ask Prometheus; the names are the legend's, or `app` and the x label of an instant query."""
    expr = query.expr.replace("$app", ".*").replace("$environment", ".*")
    expr = expr.replace("$__rate_interval", "1m").replace("$__range", f"{round(span[1] - span[0])}s")
    asked: dict[str, object] = {"query": expr, "time": span[1]}
    if not instant:
        asked = {"query": expr, "start": span[0], "end": span[1], "step": STEP}
    path = "query" if instant else "query_range"
    url = f"{prometheus}/api/v1/{path}?{urllib.parse.urlencode(asked)}"
    with urllib.request.urlopen(url, timeout=30) as reply:  # noqa: S310 - the address is the caller's
        found: Any = json.load(reply)["data"]["result"]
    return [
        Series(
            _name(query.legend, one["metric"], x),
            [(float(at), float(value)) for at, value in one.get("values") or [one["value"]]],
        )
        for one in found
    ]


def _name(legend: str, labels: dict[str, str], x: str) -> str:
    if x:
        return f"{labels.get('app', '')}\n{labels.get(x, '')}"
    text = legend or " ".join("{{" + name + "}}" for name in labels)
    for name, value in labels.items():
        text = text.replace("{{" + name + "}}", value)
    return text
