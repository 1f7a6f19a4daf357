"""Faithfulness and hallucination rate by app, model, prompt version and evaluator."""

from __future__ import annotations

from typing import Final

from grafana import promql
from grafana.board import Dashboard, Panel, Query, Row


def _by(label: str, what: str) -> tuple[Panel, Panel, Panel]:
    """Faithfulness, hallucination rate and raw count by one label."""
    by = f"app, {label}" if label != "app" else "app"
    legend = f"{{{{app}}}} {{{{{label}}}}}" if label != "app" else "{{app}}"
    return (
        Panel(
            title=f"Faithfulness by {what}",
            queries=(Query(promql.faithfulness(by), legend),),
            description="Mean share of supported claims over 30 minutes, weighted by 1/sampling probability.",
            unit="percentunit",
            limits=promql.SHARE,
            line=0.8,
            link=True,
        ),
        Panel(
            title=f"Hallucination rate by {what}",
            queries=(Query(promql.hallucination(by), legend),),
            description="Answers with a claim contradicted or not found, among grounded and ungrounded ones.",
            unit="percentunit",
            limits=(0.0, None),
            line=0.05,
            link=True,
        ),
        Panel(
            title=f"Answers behind it, by {what}",
            queries=(Query(promql.grown("aftercheck_faithfulness_raw_count", by), legend),),
            description="Really evaluated answers of the 30 minutes. Below 20 a mean says little.",
            limits=(0.0, None),
            link=True,
        ),
    )


AUDITED: Final = promql.grown(
    "aftercheck_judged_claims_total", "app", f'{promql.QUALITY}, result=~"agreed|disagreed"', "6h"
)
DISAGREED: Final = promql.grown(
    "aftercheck_judged_claims_total", "app", f'{promql.QUALITY}, result="disagreed"', "6h"
)

QUALITY_BOARD: Final = Dashboard(
    uid="aftercheck-quality",
    title="aftercheck: quality",
    description="Faithfulness and hallucination rate by app, model, prompt version and evaluator.",
    since="now-24h",
    rows=(
        Row(title="By app", panels=_by("app", "app")),
        Row(title="By model", panels=_by("model", "model")),
        Row(title="By prompt version", panels=_by("prompt_version", "prompt version")),
        Row(
            title="By evaluator: numbers of two evaluator versions do not compare",
            panels=(
                *_by("evaluator", "evaluator"),
                Panel(
                    title="Evaluator versions",
                    queries=(Query("max by (evaluator, version, quality) (aftercheck_evaluator_info)"),),
                    description="sha256 over all that can change a verdict. A vertical line marks a new one.",
                    kind="table",
                    width=12,
                ),
                Panel(
                    title="Judge and verifier disagree",
                    queries=(Query(promql.over(f"({DISAGREED} or {AUDITED} * 0)", AUDITED), "{{app}}"),),
                    description="Share of the audit sample's claims on which they differ. Absent without a judge.",
                    unit="percentunit",
                    limits=promql.SHARE,
                    line=0.3,
                    link=True,
                    width=6,
                ),
                Panel(
                    title="Canaries",
                    queries=(
                        Query("max(aftercheck_judge_canary_accuracy_ratio)", "judge right"),
                        Query("max(aftercheck_judge_canary_accuracy_lower)", "lower end, 95 %"),
                        Query("max(aftercheck_judge_canary_accuracy_upper)", "upper end, 95 %"),
                    ),
                    description="Known verdicts, mixed in: share that the judge gets right. From 50 on.",
                    unit="percentunit",
                    limits=promql.SHARE,
                    line=0.9,
                    width=6,
                ),
            ),
        ),
        Row(
            title="What the answers are made of",
            panels=(
                Panel(
                    title="Outcomes",
                    queries=(Query(promql.grown("aftercheck_answers_raw_total", "outcome"), "{{outcome}}"),),
                    description="Evaluated answers by outcome. Abstained and no_claims stay outside every mean.",
                    kind="stacked",
                ),
                Panel(
                    title="Claims by verdict",
                    queries=(Query(promql.grown("aftercheck_claims_total", "status"), "{{status}}"),),
                    description="Supported, contradicted, not found, unclear: against what the model was given.",
                    kind="stacked",
                ),
                Panel(
                    title="Claims by type",
                    queries=(Query(promql.grown("aftercheck_claims_by_type_total", "type"), "{{type}}"),),
                    description="Numbers, quotes and actions need a source.",
                    kind="stacked",
                ),
                Panel(
                    title="Critical unsupported claims",
                    queries=(Query(promql.grown("aftercheck_critical_claims_total", "app"), "{{app}}"),),
                    description="Of high severity, or of a type that needs a source; already with a user (R54).",
                    limits=(0.0, None),
                    link=True,
                ),
                Panel(
                    title="Proposed actions",
                    queries=(Query(promql.grown("aftercheck_actions_total", "action"), "{{action}}"),),
                    description="allow, warn or block, as the risk formula proposes.",
                    kind="stacked",
                ),
                Panel(
                    title="Late answers",
                    queries=(Query(promql.grown("aftercheck_late_answers_total", "outcome"), "{{outcome}}"),),
                    description="Evaluated more than 15 minutes after they left: kept out of the alerts.",
                    kind="stacked",
                ),
            ),
        ),
    ),
)
