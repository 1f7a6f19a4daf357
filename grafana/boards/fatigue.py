"""Fatigue curves and slopes (R30)."""

from __future__ import annotations

from typing import Final

from grafana import promql
from grafana.board import Dashboard, Panel, Query, Row

SELECT: Final = 'app=~"$app"'
FAITHFULNESS: Final = f'measure="faithfulness", {SELECT}'


def _curve(measure: str, against: str, what: str) -> Panel:
    select = f'{SELECT}, measure="{measure}", against="{against}"'
    return Panel(
        title=f"{measure.replace('_', ' ').capitalize()} by {what}",
        queries=(Query(f"max by (app, step) (aftercheck_fatigue_mean{{{select}}})"),),
        description="Mean at each step inside sessions: differences between sessions are taken out. First 4 turns of"
        " sessions with at least 5. A pattern, not a cause.",
        kind="bars",
        unit="percentunit",
        limits=promql.SHARE,
        x="step",
    )


_STEPS: Final = (("turn", "turn"), ("call_index", "model call"), ("context_tokens", "context size"))

FATIGUE_BOARD: Final = Dashboard(
    uid="aftercheck-fatigue",
    title="aftercheck: fatigue",
    description="Does quality fall from step to step inside a session? A pattern, not a cause (R30).",
    since="now-7d",
    rows=(
        Row(
            title="Slopes: silent below 50 sessions",
            panels=(
                Panel(
                    title="Slope per step",
                    queries=(Query(f"max by (app, measure, against) (aftercheck_fatigue_slope{{{SELECT}}})"),),
                    description="Per turn, per model call, per 1,000 context tokens. Below 0: quality falls.",
                    kind="table",
                ),
                Panel(
                    title="Upper end of the 99 % interval",
                    queries=(
                        Query(
                            f"max by (app, measure, against) (aftercheck_fatigue_slope_upper{{{SELECT}}})",
                            "{{app}} {{measure}} {{against}}",
                        ),
                    ),
                    description="Below 0 the fall is beyond chance; FatigueSlope fires below -0.01 (-0.005 per 1,000"
                    " tokens).",
                    line=-0.01,
                ),
                Panel(
                    title="Sessions behind it",
                    queries=(
                        Query(
                            f"max by (app, against) (aftercheck_fatigue_sessions{{{FAITHFULNESS}}})",
                            "{{app}} {{against}}",
                        ),
                    ),
                    description="Below 50 nothing is said. Sessions need sampling by session: aftercheck sampling set"
                    " APP RATE --by session.",
                    limits=(0.0, None),
                    line=50,
                ),
            ),
        ),
        *(
            Row(
                title=f"By {what}",
                panels=tuple(
                    _curve(measure, against, what)
                    for measure in ("faithfulness", "citation_precision", "self_consistency")
                ),
            )
            for against, what in _STEPS
        ),
    ),
)
