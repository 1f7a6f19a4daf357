"""PromQL of the page on falling faithfulness (R27), and its numbers.

A window of n answers fires when mean + Z * sd * sqrt(design effect / n) < THRESHOLD: it is then certain, not only
measured, that the true mean is below. Z is 3.0: the 2.58 of the first design paged a healthy service with mean .85
and sd .30 twice in 30 days at 6 evaluations per minute, because the window slides (benchmarks/alert_false_pages.py).
Production answers of `quality="standard"` only (R13, R53).
"""

from __future__ import annotations

from typing import Final

from aftercheck_worker.oncall.rule import Recording

THRESHOLD: Final = 0.8
Z: Final = 3.0
MINIMUM: Final = 20
"""Answers that a window must hold before anything is said of it, counted as independent ones: with 20 alike answers
of four sessions the page came to a healthy service eleven times in 30 days (benchmarks/alert_false_pages.py)."""
HOLD_SECONDS: Final = 30
KEEP_SECONDS: Final = 120
WINDOWS: Final = {"5m": 300, "30m": 1800}

BY: Final = "app, environment, evaluator"
SELECT: Final = 'quality="standard", origin="production"'


def summed(metric: str, window: str, by: str = BY, select: str = "") -> str:
    """Increase over the window, summed by labels; replicas of the exporter show the same numbers: `max` first."""
    inner = f"increase({metric}{{{SELECT}{', ' + select if select else ''}}}[{window}])"
    return f"sum by ({by}) (max without (instance, pod) ({inner}))"


def recordings(window: str) -> tuple[Recording, ...]:
    """Count, independent count, mean, variance of the mean, and upper bound over one window.

    The mean is weighted by 1/sampling probability; the count is of answers really evaluated (R53). The independent
    count is that of as many unrelated answers as would tell as much: the count over the design effect.
    """
    name = f"aftercheck:faithfulness_{{}}:{window}"
    count, mean = name.format("count"), name.format("mean")
    weighted = summed("aftercheck_faithfulness_count", window)
    square = f"{summed('aftercheck_faithfulness_sumsq_total', window)} / {weighted}"
    # A variance needs two answers; rounding may leave a hair below 0 where all answers are equal.
    spread = f"clamp_min({square} - {mean} ^ 2, 0) / clamp_min({count} - 1, 1)"
    known = f'max by ({BY}) (aftercheck_faithfulness_design_effect{{quality="standard"}})'
    effect = f"({known} or {count} ^ 0)"
    widened = f"({spread}) * {effect}"
    return (
        Recording(record=count, expr=f"{summed('aftercheck_faithfulness_raw_count', window)} > 0"),
        Recording(record=name.format("independent_count"), expr=f"{count} / {effect}"),
        Recording(record=mean, expr=f"{summed('aftercheck_faithfulness_sum', window)} / ({weighted} > 0)"),
        Recording(record=name.format("variance_of_mean"), expr=widened),
        Recording(record=name.format("upper"), expr=f"{mean} + {Z:g} * sqrt({name.format('variance_of_mean')})"),
    )


def low(window: str) -> str:
    """True while the window alone proves that the mean is low."""
    name = f"aftercheck:faithfulness_{{}}:{window}"
    return f"{name.format('upper')} < {THRESHOLD:g} and {name.format('independent_count')} >= {MINIMUM}"


def page() -> str:
    """Five minutes are low; or thirty are, unless the last five have enough answers and are fine again."""
    fine = f"aftercheck:faithfulness_mean:5m >= {THRESHOLD:g} and aftercheck:faithfulness_count:5m >= {MINIMUM}"
    return f"({low('5m')}) or (({low('30m')}) unless ({fine}))"


def plain(window: str = "5m", minimum: int = 70) -> str:
    """The plain mean below the threshold with a minimum count."""
    name = f"aftercheck:faithfulness_{{}}:{window}"
    return f"{name.format('mean')} < {THRESHOLD:g} and {name.format('count')} >= {minimum}"
