"""The funnel, and whether the fleet moves."""

from __future__ import annotations

from typing import Final

from grafana import promql
from grafana.board import Dashboard, Panel, Query, Row
from grafana.boards import answers


def _total(metric: str, select: str = promql.TRAFFIC) -> str:
    return f"sum(max without (instance, pod) (increase({metric}{{{select}}}[$__range])))"


PIPELINE: Final = Dashboard(
    uid="aftercheck-pipeline",
    title="aftercheck: pipeline",
    description="Of all traces, how many were scored, and where the others fell out.",
    rows=(
        Row(
            title="Funnel of the chosen time",
            panels=(
                Panel(
                    title="From trace to verdict",
                    queries=(
                        Query(_total("aftercheck_traces_dropped_total"), "1 lost before the intake"),
                        Query(_total("aftercheck_traces_unsampled_total"), "2 left out by sampling"),
                        Query(_total("aftercheck_traces_sampled_total"), "3 sampled"),
                        Query(_total("aftercheck_finished_answers_total"), "4 answers finished"),
                        Query(
                            _total("aftercheck_finished_answers_total", f'{promql.TRAFFIC}, state="scored"'),
                            "5 answers scored",
                        ),
                        Query(
                            _total("aftercheck_answers_raw_total", f"{promql.QUALITY}, {promql.DECIDED}"),
                            "6 grounded or ungrounded, standard quality",
                        ),
                    ),
                    description="A step without a bar had nothing to count.",
                    kind="bars",
                    width=12,
                ),
                Panel(
                    title="How answers end",
                    queries=(
                        Query(
                            promql.grown("aftercheck_finished_answers_total", "state", promql.TRAFFIC),
                            "{{state}}",
                        ),
                    ),
                    description="Terminal states over 30 minutes. None of them but scored is a score.",
                    kind="stacked",
                    width=12,
                ),
            ),
        ),
        Row(
            title="Does it move?",
            panels=(
                Panel(
                    title="Waiting",
                    queries=(
                        Query("max by (queue) (aftercheck_queue_depth)", "{{queue}}"),
                        Query("max by (state) (aftercheck_in_flight)", "ledger {{state}}"),
                    ),
                    description="Entries of the stream and of the Celery lists (up to 32 answers each), and answers"
                    " without an end.",
                    limits=(0.0, None),
                ),
                answers.QUEUE_AGE,
                Panel(
                    title="Oldest unfinished answer, last finished one",
                    queries=(
                        Query("max(aftercheck_in_flight_oldest_age_seconds)", "oldest unfinished"),
                        Query("time() - max(aftercheck_last_finalised_timestamp_seconds)", "since the last verdict"),
                    ),
                    description="Both above 300 s: EvaluationStalled pages.",
                    unit="s",
                    limits=(0.0, None),
                    line=300,
                ),
            ),
        ),
        Row(
            title="What is lost, and why",
            panels=(
                Panel(
                    title="Lost before the intake",
                    queries=(
                        Query(
                            promql.grown("aftercheck_traces_dropped_total", "reason", promql.TRAFFIC),
                            "{{reason}}",
                        ),
                    ),
                    description="As producers and the admission report it. The sample is then no longer fair.",
                    kind="stacked",
                    width=6,
                ),
                Panel(
                    title="Refused entries",
                    queries=(
                        Query(
                            promql.grown("aftercheck_entries_rejected_total", "reason", promql.TRAFFIC),
                            "{{reason}}",
                        ),
                    ),
                    description="Stream entries that the intake refused.",
                    kind="stacked",
                    width=6,
                ),
                Panel(
                    title="Not assessable",
                    queries=(
                        Query(
                            promql.grown("aftercheck_not_assessable_answers_total", "reason", promql.TRAFFIC),
                            "{{reason}}",
                        ),
                    ),
                    description="Captured, but nobody can judge it: no content, no evidence expected, cut.",
                    kind="stacked",
                    width=6,
                ),
                Panel(
                    title="Failed and given up",
                    queries=(
                        Query(
                            promql.grown("aftercheck_failed_answers_total", "reason", promql.TRAFFIC),
                            "failed {{reason}}",
                        ),
                        Query(
                            promql.grown("aftercheck_dead_letters_total", "reason", promql.TRAFFIC),
                            "dead letter {{reason}}",
                        ),
                        Query(
                            promql.grown("aftercheck_evaluator_failures_total", "reason"),
                            "beside a verdict {{reason}}",
                        ),
                    ),
                    description="Never a score.",
                    kind="stacked",
                    width=6,
                ),
            ),
        ),
        Row(
            title="The fleet itself",
            panels=(
                Panel(
                    title="Sent again, done twice",
                    queries=(
                        Query(
                            promql.grown("aftercheck_reconciled_answers_total", "state", promql.TRAFFIC),
                            "reconciled {{state}}",
                        ),
                        Query(
                            promql.grown("aftercheck_duplicate_results_total", "app", promql.TRAFFIC),
                            "duplicate {{app}}",
                        ),
                    ),
                    description="What the reconciler sent again, and results that another worker had written first.",
                    kind="stacked",
                ),
                Panel(
                    title="Open dead letters",
                    queries=(Query("max(aftercheck_dead_letters_open)", "open"),),
                    description="Wait for `aftercheck dlq`.",
                    limits=(0.0, None),
                ),
                Panel(
                    title="Exporter",
                    queries=(
                        Query("max by (dependency) (aftercheck_exporter_dependency_up)", "{{dependency}} answers"),
                        Query("max(aftercheck_exporter_refresh_seconds)", "refresh, s"),
                    ),
                    description="1 while the store answers. While it does not, its series are absent.",
                    limits=(0.0, None),
                ),
            ),
        ),
    ),
)
