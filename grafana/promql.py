"""PromQL of the panels.

Means are sums over counts, weighted by 1/sampling probability, over production answers of `quality="standard"` only
(R13, R53). Nothing measured = no line, never 0.
"""

from __future__ import annotations

from typing import Final

CHOSEN: Final = 'app=~"$app", environment=~"$environment"'
QUALITY: Final = f'quality="standard", origin="production", {CHOSEN}'
TRAFFIC: Final = f'origin="production", {CHOSEN}'
FATIGUE: Final = 'app=~"$app"'
WINDOW: Final = "30m"
SHARE: Final = (0.0, 1.0)
DECIDED: Final = 'outcome=~"grounded|ungrounded"'


def grown(metric: str, by: str, select: str = QUALITY, window: str = WINDOW) -> str:
    """Increase of a counter, summed by labels; replicas of the exporter show the same numbers: `max` first."""
    return f"sum by ({by}) (max without (instance, pod) (increase({metric}{{{select}}}[{window}])))"


def over(part: str, whole: str) -> str:
    """A share; absent where nothing was counted."""
    return f"{part} / ({whole} > 0)"


def faithfulness(by: str) -> str:
    """Weighted mean faithfulness of the window."""
    return over(grown("aftercheck_faithfulness_sum", by), grown("aftercheck_faithfulness_count", by))


def hallucination(by: str) -> str:
    """Weighted share of hallucinated answers among the decided ones."""
    whole = grown("aftercheck_answers_total", by, f"{QUALITY}, {DECIDED}")
    return over(f"({grown('aftercheck_hallucinated_answers_total', by)} or {whole} * 0)", whole)


def share(metric: str, part: str, by: str) -> str:
    """Share of a counter's increase that matches `part`. Where only the rest was counted, that is a measured 0."""
    whole = grown(metric, by)
    return over(f"({grown(metric, by, f'{QUALITY}, {part}')} or {whole} * 0)", whole)


def recorded(name: str) -> str:
    """A value of the recording rules."""
    return f"{name}{{{CHOSEN}}}"
