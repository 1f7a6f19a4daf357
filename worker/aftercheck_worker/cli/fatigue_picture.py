"""The fatigue curves as one SVG: a row per app, a panel per kind of step, a line per measure with its 95 % bars.

Written by hand because it is three kinds of shapes; readable in light and dark, and told apart without colour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from aftercheck_worker.cli.output import visible
from aftercheck_worker.fatigue import AGAINST, Against, Curve, Measure, Report

WIDTH: Final = 320
HEIGHT: Final = 230
FONT: Final = 'font-family="system-ui, sans-serif" font-size="11"'
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 44, 40
STYLES: Final[dict[Measure, tuple[str, str]]] = {
    "faithfulness": ("#0b6bcb", ""),
    "citation_precision": ("#b35900", "6 3"),
    "self_consistency": ("#2e7d32", "2 3"),
}
"""Colour and dashes of a line."""
TITLES: Final[dict[Against, str]] = {
    "turn": "by turn",
    "call_index": "by model call",
    "context_tokens": "by context tokens",
}


def svg(report: Report) -> str:
    """Return the picture; without any curve it says so."""
    apps = sorted({curve.app for curve in report.curves})
    width, height = WIDTH * len(AGAINST), HEIGHT * max(1, len(apps)) + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" {FONT}>',
        "<title>Quality inside sessions: a pattern, not a cause</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for row, app in enumerate(apps):
        for column, against in enumerate(AGAINST):
            curves = [c for c in report.curves if (c.app, c.against) == (app, against)]
            moved = f"translate({column * WIDTH},{row * HEIGHT})"
            parts += [f'<g transform="{moved}">', *_panel(f"{app} {TITLES[against]}", curves), "</g>"]
    if not apps:
        parts.append(_text(12, 40, f"Not enough sessions: at least {report.minimum} are needed."))
    parts += [f'<g transform="translate(0,{height - 30})">', *_legend(report.turns), "</g>", "</svg>"]
    return "\n".join(parts) + "\n"


def _panel(title: str, curves: Sequence[Curve]) -> Iterator[str]:
    yield _text(LEFT, 24, visible(title), weight="bold")
    if not curves:
        yield _text(LEFT, HEIGHT / 2, "nothing to show", colour="#666666")
        return
    names = list(dict.fromkeys(point.step for curve in curves for point in curve.points))
    lowest = min((point.mean - point.half for curve in curves for point in curve.points), default=0.0)
    floor = max(0.0, min(0.5, int(lowest * 10) / 10))

    def x(step: str) -> float:
        return LEFT + (names.index(step) + 0.5) * (WIDTH - LEFT - RIGHT) / len(names)

    def y(value: float) -> float:
        share = (min(1.0, max(floor, value)) - floor) / (1 - floor)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    for line in (floor, (1 + floor) / 2, 1.0):
        yield f'<path d="M{LEFT} {y(line):.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>'
        yield _text(LEFT - 6, y(line) + 4, f"{line:.2f}", anchor="end", colour="#444444")
    for name in names:
        yield _text(x(name), HEIGHT - BOTTOM + 16, name, anchor="middle", colour="#444444")
    for curve in curves:
        colour, dashes = STYLES[curve.measure]
        path = " ".join(
            f"{'L' if n else 'M'}{x(point.step):.1f} {y(point.mean):.1f}" for n, point in enumerate(curve.points)
        )
        yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        for point in curve.points:
            at = x(point.step)
            bar = f"M{at:.1f} {y(point.mean - point.half):.1f}V{y(point.mean + point.half):.1f}"
            yield f'<path d="{bar}" stroke="{colour}"/>'
            told = f"{curve.measure} {point.step}: {point.mean:.3f} +/- {point.half:.3f}, {point.answers} answers"
            circle = f'<circle cx="{at:.1f}" cy="{y(point.mean):.1f}" r="3" fill="{colour}">'
            yield f"{circle}<title>{escape(told)}</title></circle>"


def _legend(turns: int) -> Iterator[str]:
    place = LEFT
    for measure, (colour, dashes) in STYLES.items():
        yield f'<path d="M{place} 0h22" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}"/>'
        yield _text(place + 28, 4, measure.replace("_", " "))
        place += 150
    told = f"first {turns} turns of sessions with more; session differences taken out; a pattern, not a cause"
    yield _text(LEFT, 22, told, colour="#444444")


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = "#111111", weight: str = "") -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{bold}>{escape(text)}</text>'
