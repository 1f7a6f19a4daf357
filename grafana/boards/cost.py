"""What a verified answer costs (R29)."""

from __future__ import annotations

from typing import Final

from grafana import promql
from grafana.board import Dashboard, Panel, Query, Row

_ANSWERED: Final = promql.grown("aftercheck_answers_raw_total", "", promql.TRAFFIC).replace("sum by ()", "sum")

SAMPLED: Final = promql.grown("aftercheck_traces_sampled_total", "app", promql.TRAFFIC)
UNSAMPLED: Final = promql.grown("aftercheck_traces_unsampled_total", "app", promql.TRAFFIC)

COST: Final = Dashboard(
    uid="aftercheck-cost",
    title="aftercheck: cost",
    description="What a verified answer costs (R29).",
    since="now-24h",
    rows=(
        Row(
            title="Work",
            panels=(
                Panel(
                    title="Evaluated answers per hour",
                    queries=(
                        Query(
                            promql.grown("aftercheck_answers_raw_total", "evaluator", promql.TRAFFIC, "1h"),
                            "{{evaluator}}",
                        ),
                    ),
                    description="Production answers, raw: what was really computed.",
                    limits=(0.0, None),
                ),
                Panel(
                    title="Share of traffic that is sampled",
                    queries=(
                        Query(
                            promql.over(SAMPLED, f"({SAMPLED} + ({UNSAMPLED} or {SAMPLED} * 0))"),
                            "{{app}}",
                        ),
                    ),
                    description="Halve the rate and the cost halves; the interval of the mean widens by 1.4.",
                    unit="percentunit",
                    limits=(0.0, None),
                ),
                Panel(
                    title="CPU seconds of the nodes per evaluated answer",
                    queries=(
                        Query(
                            promql.over('sum(increase(node_cpu_seconds_total{mode!="idle"}[30m]))', _ANSWERED),
                            "all nodes",
                        ),
                    ),
                    description="Everything that the scraped nodes do, over the answers evaluated: an upper bound.",
                    unit="s",
                    limits=(0.0, None),
                ),
            ),
        ),
        Row(
            title="Judge",
            panels=(
                Panel(
                    title="Claims that the judge decided, per hour",
                    queries=(
                        Query(
                            promql.grown("aftercheck_judged_claims_total", "app, result", promql.TRAFFIC, "1h"),
                            "{{app}} {{result}}",
                        ),
                    ),
                    description="Only the uncertain band and the audit share go to a judge. Absent without one.",
                    limits=(0.0, None),
                    link=True,
                    width=12,
                ),
                Panel(
                    title="Judge work that failed, per hour",
                    queries=(
                        Query(
                            promql.grown(
                                "aftercheck_evaluator_failures_total",
                                "reason",
                                f'{promql.TRAFFIC}, reason=~"judge_.*"',
                                "1h",
                            ),
                            "{{reason}}",
                        ),
                    ),
                    description="Paid or not, it gave no verdict; the verifier's stands.",
                    limits=(0.0, None),
                    width=12,
                ),
            ),
        ),
    ),
)
