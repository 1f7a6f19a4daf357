"""PromQL of the hallucination budget: multi-window burn rates, with a lower bound instead of a bare ratio.

The budget is the share of hallucinated answers that you accept; no budget is universal (R56). A burn rate of b
spends the budget of 30 days in 30/b days.
"""

from __future__ import annotations

from typing import Final

from aftercheck_worker.oncall.faithfulness import BY, summed
from aftercheck_worker.oncall.rule import Recording

BUDGET: Final = 0.05
Z: Final = 3.0
FAST: Final = (10.0, "5m", "1h")
SLOW: Final = (4.0, "30m", "6h")
MINIMUM: Final = 50
"""Answers in the long window."""
WINDOWS: Final = ("5m", "30m", "1h", "6h")
_DECIDED: Final = 'outcome=~"grounded|ungrounded"'


def recordings(window: str) -> tuple[Recording, ...]:
    """Count of decided answers and share of hallucinated ones over one window."""
    count, ratio = f"aftercheck:decided_count:{window}", f"aftercheck:hallucination_ratio:{window}"
    raw = summed("aftercheck_answers_raw_total", window, select=_DECIDED)
    decided = summed("aftercheck_answers_total", window, select=_DECIDED)
    # No series of hallucinated answers means that there was none, as long as answers were decided.
    bad = f"({summed('aftercheck_hallucinated_answers_total', window)} or {decided} * 0)"
    return (
        Recording(record=count, expr=f"{raw} > 0"),
        Recording(record=ratio, expr=f"clamp_max({bad} / ({decided} > 0), 1)"),
    )


def burning(burn: float, short: str, long: str) -> str:
    """The short window is above the rate, and the long one is certainly above it."""
    limit = f"{burn * BUDGET:g}"
    ratio, count = f"aftercheck:hallucination_ratio:{long}", f"aftercheck:decided_count:{long}"
    lower = f"{ratio} - {Z:g} * sqrt({ratio} * (1 - {ratio}) / {count})"
    return f"({lower}) > {limit} and {count} >= {MINIMUM} and aftercheck:hallucination_ratio:{short} > {limit}"


__all__ = ("BUDGET", "BY", "FAST", "SLOW", "WINDOWS", "burning", "recordings")
