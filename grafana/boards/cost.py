"""What a verified answer costs (R29)."""

from __future__ import annotations

from typing import Final

from grafana import promql
from grafana.board import Dashboard, Panel, Query, Row

_ANSWERED: Final = promql.grown("aftercheck_answers_raw_total", "", promql.TRAFFIC).replace("sum by ()", "sum")

SAMPLED: Final = promql.grown("aftercheck_traces_sampled_total", "app", promql.TRAFFIC)
UNSAMPLED: Final = promql.grown("aftercheck_traces_unsampled_total", "app", promql.TRAFFIC)

DOLLARS: Final = promql.grown("aftercheck_judge_dollars_total", "app", promql.TRAFFIC)
FINALISED: Final = promql.grown("aftercheck_finalised_answers_total", "app", promql.TRAFFIC)

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
            title="Judge: absent without one",
            panels=(
                Panel(
                    title="US dollars per verified answer",
                    queries=(Query(promql.over(DOLLARS, FINALISED), "{{app}}"),),
                    description="The judge's price at the configured prices, retries and canaries included, over all"
                    " answers finalised, judged or not.",
                    unit="currencyUSD",
                    limits=(0.0, None),
                    link=True,
                ),
                Panel(
                    title="Tokens per hour",
                    queries=(
                        Query(
                            promql.grown("aftercheck_judge_tokens_total", "kind", promql.TRAFFIC, "1h"), "{{kind}}"
                        ),
                    ),
                    description="Prompt and completion tokens of the judge's replies.",
                    kind="stacked",
                ),
                Panel(
                    title="Who had the last word",
                    queries=(
                        Query(
                            promql.grown("aftercheck_finalised_answers_total", "decided_by", promql.TRAFFIC, "1h"),
                            "{{decided_by}}",
                        ),
                    ),
                    description="verifier_fallback: sent to the judge, which did not answer in time.",
                    kind="stacked",
                ),
                Panel(
                    title="Replies per hour",
                    queries=(
                        Query(promql.grown("aftercheck_judge_calls_total", "app", promql.TRAFFIC, "1h"), "{{app}}"),
                    ),
                    description="Only the uncertain band and the audit share go to a judge, unless all do.",
                    limits=(0.0, None),
                    link=True,
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
                ),
                Panel(
                    title="Waiting for the judge",
                    queries=(
                        Query("max(aftercheck_judge_waiting_answers)", "answers"),
                        Query("max(aftercheck_judge_waiting_oldest_age_seconds)", "age of the oldest, s"),
                    ),
                    description="After the deadline the verifier's word is final.",
                    limits=(0.0, None),
                ),
            ),
        ),
    ),
)
