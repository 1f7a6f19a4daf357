"""Series of one app in promtool's notation, a value a minute: rates change where the courses do."""

from __future__ import annotations

from collections.abc import Sequence

Course = float | Sequence[tuple[float, int]]
"""Growth per minute: one rate for all `MINUTES`, or (rate, minutes) after one another."""

MINUTES = 480
UP = {"aftercheck_exporter_up": f"1x{MINUTES}"}


def counter(app: str, name: str, course: Course, more: str = "") -> dict[str, str]:
    """A counter that has a long past. Its evaluator is called like the app."""
    parts = [(course, MINUTES)] if isinstance(course, float | int) else course
    value = 1000.0
    told: list[str] = []
    for rate, minutes in parts:
        told.append(f"{value:.9g}{rate:+.9g}x{minutes - 1}")
        value += rate * minutes
    labels = f'app="{app}",environment="p",evaluator="{app}",quality="standard",origin="production"{more}'
    return {f"aftercheck_{name}{{{labels}}}": " ".join(told)}


def gauge(name: str, labels: str, *parts: tuple[float, int]) -> dict[str, str]:
    """A gauge: (value, minutes) after one another."""
    return {f"aftercheck_{name}{{{labels}}}": " ".join(f"{value:g}x{minutes - 1}" for value, minutes in parts)}


def scaled(course: Course, factor: float) -> Course:
    """The course with other rates."""
    if isinstance(course, float | int):
        return course * factor
    return [(rate * factor, minutes) for rate, minutes in course]


def answers(app: str, per_minute: Course, mean: float, sd: float = 0.2) -> dict[str, str]:
    """The counters of faithfulness."""
    return {
        **counter(app, "faithfulness_sum", scaled(per_minute, mean)),
        **counter(app, "faithfulness_count", per_minute),
        **counter(app, "faithfulness_raw_count", per_minute),
        **counter(app, "faithfulness_sumsq_total", scaled(per_minute, mean**2 + sd**2)),
    }


def decided(app: str, per_minute: Course, hallucinated: Course) -> dict[str, str]:
    """Decided answers, and those of them that hold a hallucination."""
    return {
        **counter(app, "answers_total", per_minute, ',outcome="ungrounded"'),
        **counter(app, "answers_raw_total", per_minute, ',outcome="ungrounded"'),
        **counter(app, "hallucinated_answers_total", hallucinated),
    }


def firing(name: str, app: str) -> str:
    """Expression that is there while the alert fires for the app; alerts of the whole fleet have no app."""
    return f'count(ALERTS{{alertname="{name}",alertstate="firing",app=~"{app}|"}})'
