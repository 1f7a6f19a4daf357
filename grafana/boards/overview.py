"""Quality beside CPU, memory and queue (R26)."""

from __future__ import annotations

from typing import Final

from grafana import promql
from grafana.board import Dashboard, Panel, Query, Row
from grafana.boards import answers

FAITHFULNESS_NOW: Final = Panel(
    title="Faithfulness, last 5 minutes",
    queries=(
        Query(
            f'max by (app) (aftercheck_faithfulness_ratio{{quality="standard", {promql.CHOSEN}}})',
            "{{app}}",
        ),
    ),
    description="The 5-minute gauge, read from Postgres: exact at low traffic. Read it with the number of answers.",
    kind="number",
    unit="percentunit",
    limits=promql.SHARE,
    line=0.8,
    link=True,
    width=6,
)
ANSWERS_NOW: Final = Panel(
    title="Answers in these 5 minutes",
    queries=(
        Query(f'max by (app) (aftercheck_window_evaluations{{quality="standard", {promql.CHOSEN}}})', "{{app}}"),
    ),
    description="Raw number of evaluated answers behind the gauge. No number means none, not zero.",
    kind="number",
    width=6,
)
FIRING: Final = Panel(
    title="Firing alerts",
    queries=(Query('max by (alertname, severity, app) (ALERTS{alertstate="firing", service="aftercheck"})'),),
    description="What pages or tickets now. Each has a runbook: docs/runbooks.",
    kind="table",
    width=6,
)
STALE: Final = Panel(
    title="Since the last verdict",
    queries=(Query("time() - max(aftercheck_last_finalised_timestamp_seconds)", "any app"),),
    description="Seconds since any answer was finished. Long while answers wait: the fleet stands still.",
    kind="number",
    unit="s",
    width=6,
)
CPU: Final = Panel(
    title="CPU",
    queries=(
        Query('1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[$__rate_interval]))', "{{instance}}"),
    ),
    description="Busy share of all cores, from node-exporter. It can be perfect while every answer is invented.",
    unit="percentunit",
    limits=promql.SHARE,
)
MEMORY: Final = Panel(
    title="Memory",
    queries=(Query("1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes", "{{instance}}"),),
    description="Used share of memory, from node-exporter.",
    unit="percentunit",
    limits=promql.SHARE,
)

OVERVIEW: Final = Dashboard(
    uid="aftercheck-overview",
    title="aftercheck: overview",
    description="Quality beside CPU, memory and queue (R26).",
    rows=(
        Row(title="Now", panels=(FAITHFULNESS_NOW, ANSWERS_NOW, FIRING, STALE)),
        Row(title="Are the answers right?", panels=(answers.MEAN, answers.RATE)),
        Row(title="Is the machine well?", panels=(CPU, MEMORY, answers.QUEUE_AGE)),
    ),
)
