"""Panels that several dashboards show."""

from __future__ import annotations

from typing import Final

from grafana import promql
from grafana.board import Panel, Query

MEAN: Final = Panel(
    title="Faithfulness and its upper bound",
    queries=(
        Query(promql.recorded("aftercheck:faithfulness_mean:5m"), "{{app}} mean"),
        Query(promql.recorded("aftercheck:faithfulness_upper:5m"), "{{app}} mean + 3 standard errors"),
    ),
    description="FaithfulnessLow pages when the upper bound is below 0.8: a mean alone does not exclude chance.",
    unit="percentunit",
    limits=promql.SHARE,
    line=0.8,
    link=True,
    width=12,
)
RATE: Final = Panel(
    title="Hallucination rate",
    queries=(
        Query(promql.recorded("aftercheck:hallucination_ratio:5m"), "{{app}} 5 min"),
        Query(promql.recorded("aftercheck:hallucination_ratio:1h"), "{{app}} 1 h"),
    ),
    description="Answers with a claim contradicted or not found. The line is the shipped budget of 5 %.",
    unit="percentunit",
    limits=(0.0, None),
    line=0.05,
    link=True,
    width=12,
)

QUEUE_AGE: Final = Panel(
    title="Oldest waiting entry",
    queries=(Query("max by (queue) (aftercheck_queue_oldest_age_seconds)", "{{queue}}"),),
    description="Age of the oldest entry of each queue. Answers older than 15 minutes stay out of the alerts.",
    unit="s",
    limits=(0.0, None),
    line=300,
)
