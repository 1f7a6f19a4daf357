"""Dashboards as Grafana's JSON: the only file that knows grafana-foundation-sdk."""

from __future__ import annotations

import itertools
from typing import Final, TypeAlias

from grafana_foundation_sdk.builders import barchart, bargauge, common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as words
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from grafana.board import Dashboard, Panel, Query

DATASOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
PAGES: Final = "http://localhost:8080"
INCIDENT: Final = (
    "${pages}/ui/incidents?app=${__field.labels.app:percentencode}"
    "&start=${__from:date:seconds}&end=${__to:date:seconds}"
)
HEIGHT: Final = 8
SCHEMA: Final = "aftercheck"

Builder: TypeAlias = timeseries.Panel | stat.Panel | table.Panel | barchart.Panel | bargauge.Panel


def text(board: Dashboard, pages: str = PAGES) -> str:
    """Return a dashboard as JSON.

    Args:
        board: what it shows.
        pages: base URL of aftercheck's own pages, where data links lead.
    """
    built = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.description)
        .tags([SCHEMA])
        .time(board.since, "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(_choice("app", "App"))
        .with_variable(_choice("environment", "Environment"))
        .with_variable(dashboard.ConstantVariable("pages").value(pages))
        .link(
            dashboard.DashboardLink("All dashboards")
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([SCHEMA])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
        .link(dashboard.DashboardLink("Answers").type(models.DashboardLinkType.LINK).url("${pages}/ui/traces"))
        .annotation(_new_evaluator())
    )
    number = itertools.count(1)  # ids are part of links to a panel: by place, so that they are the same every time
    for row in board.rows:
        built = built.with_row(dashboard.Row(row.title).id(next(number)))
        for panel in row.panels:
            built = built.with_panel(_panel(panel).id(next(number)))
    return JSONEncoder(sort_keys=True, indent=2).encode(built.build()) + "\n"


def _choice(name: str, label: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query(f"label_values(aftercheck_answers_raw_total, {name})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .include_all(True)
        .all_value(".*")
    )


def _new_evaluator() -> dashboard.AnnotationQuery:
    return (
        dashboard.AnnotationQuery()
        .name("New evaluator version")
        .datasource(DATASOURCE)
        .enable(True)
        .icon_color("orange")
        .expr("aftercheck_evaluator_info unless aftercheck_evaluator_info offset 5m")
    )


def _panel(panel: Panel) -> Builder:
    built = _kind(panel).title(panel.title).description(panel.description).datasource(DATASOURCE)
    built = built.span(panel.width).height(HEIGHT).unit(panel.unit).no_value("nothing measured")
    low, high = panel.limits
    if low is not None:
        built = built.min(low)
    if high is not None:
        built = built.max(high)
    if panel.link:
        link = dashboard.DashboardLink("Answers of this app in this time").url(INCIDENT)
        built = built.data_links([link])
    for place, query in enumerate(panel.queries):
        built = built.with_target(_target(query, panel, place))
    return built


def _kind(panel: Panel) -> Builder:
    if panel.kind == "number":
        # An instant value without a graph: where nothing is measured now, no older value stands in for it.
        shown = stat.Panel().graph_mode(words.BigValueGraphMode.NONE).thresholds(_thresholds(panel))
        return shown.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    if panel.kind == "table":
        hidden = models.DataTransformerConfig(id_val="organize", options={"excludeByName": {"Time": True}})
        return table.Panel().with_transformation(hidden)
    if panel.kind == "bars" and panel.x:
        ordered = models.DataTransformerConfig(id_val="sortBy", options={"sort": [{"field": panel.x}]})
        return barchart.Panel().x_field(panel.x).with_transformation(ordered)
    if panel.kind == "bars":
        return bargauge.Panel().orientation(words.VizOrientation.HORIZONTAL)
    lines = timeseries.Panel().line_width(2).show_points(words.VisibilityMode.NEVER).span_nulls(False)
    if panel.kind == "stacked":
        stacking = common.StackingConfig().mode(words.StackingMode.NORMAL)
        return lines.fill_opacity(30).stacking(stacking)
    if panel.line is not None:
        style = common.GraphThresholdsStyleConfig().mode(words.GraphThresholdsStyleMode.DASHED)
        lines = lines.thresholds(_thresholds(panel)).thresholds_style(style)
    return lines


def _thresholds(panel: Panel) -> dashboard.ThresholdsConfig:
    """Below the line is bad where more is better: shares up to 1; else above it."""
    steps = [models.Threshold(color="text", value=None)]
    if panel.line is not None:
        better = panel.limits[1] == 1.0 and panel.line >= 0.8
        below, above = ("red", "green") if better else ("text", "red")
        steps = [models.Threshold(color=below, value=None), models.Threshold(color=above, value=panel.line)]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def _target(query: Query, panel: Panel, place: int) -> prometheus.Dataquery:
    built = prometheus.Dataquery().expr(query.expr).ref_id(chr(ord("A") + place)).datasource(DATASOURCE)
    if query.legend:
        built = built.legend_format(query.legend)
    if panel.kind == "table" or panel.x:
        return built.instant().format(PromQueryFormat.TABLE)
    if panel.kind in ("number", "bars"):
        return built.instant()
    return built.range()
