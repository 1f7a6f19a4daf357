"""PromQL of the other alerts. Each returns nothing while its part of the fleet does not run."""

from __future__ import annotations

from typing import Final

from aftercheck_worker.oncall.faithfulness import BY, SELECT, summed

_UP_THEN: Final = "on () (max(aftercheck_exporter_up offset {window}) == 1)"


def grown(metric: str, window: str, by: str, select: str = "") -> str:
    """How much a counter grew, the first increment of a new series included.

    `increase()` cannot see it: a series that starts at 1 has no earlier sample. A series without a past counts in
    full, but only where the exporter answered then: after a gap of the exporter nothing is new.
    """
    inside = ", ".join(part for part in ('origin="production"', select) if part)
    now = f"max without (instance, pod) ({metric}{{{inside}}})"
    then = f"max without (instance, pod) ({metric}{{{inside}}} offset {window})"
    fresh = f"(({now} unless {then}) and {_UP_THEN.format(window=window)})"
    return f"sum by ({by}) (clamp_min({now} - {then}, 0) or {fresh})"


def share(metric: str, part: str, window: str, *, minimum: int, by: str = BY) -> str:
    """Share of a counter's increase that matches `part`; nothing below `minimum`."""
    whole = summed(metric, window, by)
    return f"{summed(metric, window, by, part)} / ({whole} >= {minimum})"


def critical() -> str:
    """Critical unsupported claims of the last 15 minutes (R54)."""
    return grown("aftercheck_critical_claims_total", "15m", BY, 'quality="standard"') + " > 0"


def stalled() -> str:
    """Work waits and nothing was finished for five minutes."""
    finished = "time() - max(aftercheck_last_finalised_timestamp_seconds) < 300"
    return f"max(aftercheck_in_flight_oldest_age_seconds) > 300 unless ({finished})"


def drops() -> str:
    """More than 1 % of the traces were lost before the intake."""
    names = ("traces_dropped", "traces_sampled", "traces_unsampled")
    each = [grown(f"aftercheck_{name}_total", "15m", "app") for name in names]
    lost, *seen = each
    total = " + ".join(f"({expr} or {lost} * 0)" for expr in seen)
    return f"{lost} / (({lost}) + {total}) > 0.01 and {lost} >= 10"


def judge_down() -> str:
    """Most answers that were sent to the judge came back without a judgement. Silent without a judge."""
    fell = share("aftercheck_judge_answers_total", 'result="fallback"', "10m", minimum=5, by="evaluator")
    return f"{fell} > 0.5"


def disagreement() -> str:
    """Share of the claims of the random audit sample on which judge and verifier differ.

    Claims that are judged because they are uncertain differ more often, and say nothing about the others.
    """
    metric, window = "aftercheck_judged_claims_total", "6h"
    whole = summed(metric, window, select='result=~"agreed|disagreed"')
    differ = summed(metric, window, select='result="disagreed"')
    return f"{differ} / ({whole} >= 50) > 0.3"


def empty_retrieval() -> str:
    """Answers without passages, where there were passages a day ago."""
    parts = {
        window: share("aftercheck_retrievals_total", 'result="empty"', window, minimum=20) for window in ("30m",)
    }
    whole = f"increase(aftercheck_retrievals_total{{{SELECT}}}[1d] offset 1h)"
    empty = f'increase(aftercheck_retrievals_total{{{SELECT}, result="empty"}}[1d] offset 1h)'
    by = f"sum by ({BY})"
    usual = f"({by} ({empty}) or {by} ({whole}) * 0) / ({by} ({whole}) >= 20)"
    return f"({parts['30m']}) > 0.5 unless ({usual}) > 0.25"


def zero_vectors() -> str:
    """One set of passages answers most of the different questions, or every passage is the same."""
    same = "max by (app, environment) (aftercheck_retrieval_same_passages_ratio) > 0.5"
    within = share("aftercheck_retrievals_total", 'result="identical"', "30m", minimum=20, by="app, environment")
    return f"{same} or ({within}) > 0.5"


def mismatch() -> str:
    """Entries of a schema that this release does not read."""
    unknown = 'reason=~"version_newer|version_unknown|invalid_schema|header_invalid"'
    return grown("aftercheck_dead_letters_total", "15m", "app, reason", unknown) + " > 0"
