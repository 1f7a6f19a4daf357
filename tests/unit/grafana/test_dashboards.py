"""The dashboards are fresh, parse, and ask for nothing that nobody exports. No Grafana server runs in these tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import promql_parser
import pytest
import yaml

from aftercheck_worker.exporter import metrics
from aftercheck_worker.oncall import ALERTS, RECORDINGS
from grafana.__main__ import files

ROOT = Path(__file__).parents[3]
FOREIGN = {"ALERTS", "node_cpu_seconds_total", "node_memory_MemAvailable_bytes", "node_memory_MemTotal_bytes"}
"""Prometheus' own series, and node-exporter's."""
BOARDS: dict[str, Any] = {name: msgspec.json.decode(text) for name, text in files().items()}
LABELS = {metric.full_name: set(metric.labels) for metric in metrics.ALL}


def panels(board: Any) -> Iterator[Any]:
    for panel in board["panels"]:
        yield from panel.get("panels", []) if panel["type"] == "row" else [panel]


def expressions() -> Iterator[tuple[str, str]]:
    for name, board in BOARDS.items():
        for panel in panels(board):
            for target in panel["targets"]:
                yield f"{name}: {panel['title']}", target["expr"]
        for annotation in board["annotations"]["list"]:
            yield f"{name}: annotation", annotation["expr"]


EXPRESSIONS = list(expressions())


def parsed(expr: str) -> Any:
    return promql_parser.parse(expr.replace("$__rate_interval", "5m").replace("$__range", "1h"))


def selectors(node: Any) -> Iterator[Any]:
    if type(node).__name__ == "VectorSelector":
        yield node
        return
    parts: list[Any] = [
        getattr(node, part, None) for part in ("expr", "lhs", "rhs", "param", "vector_selector", "vs")
    ]
    arguments: list[Any] = getattr(node, "args", None) or []
    for child in [*parts, *arguments]:
        if child is not None:
            yield from selectors(child)


def exported() -> set[str]:
    found = {metric.full_name for metric in metrics.ALL}
    for metric in metrics.ALL:
        if metric.kind == "summary":
            found |= {f"{metric.full_name}_sum", f"{metric.full_name}_count"}
    return found | {rule.record for rule in RECORDINGS} | FOREIGN


def test_the_files_are_what_the_catalogue_says() -> None:
    folder = ROOT / "grafana/dashboards"
    assert {path.name: path.read_text() for path in folder.iterdir()} == files(), "run python -m grafana"


@pytest.mark.parametrize(("where", "expr"), EXPRESSIONS)
def test_an_expression_parses_and_reads_series_that_exist(where: str, expr: str) -> None:
    found = list(selectors(parsed(expr)))
    assert found, where
    assert {str(one.name) for one in found} <= exported(), where


def test_the_parser_does_refuse() -> None:
    with pytest.raises(ValueError, match=r".+"):
        parsed("sum by (app (rate(x[5m]))")


@pytest.mark.parametrize(("where", "expr"), EXPRESSIONS)
def test_selectors_use_labels_that_the_metric_has(where: str, expr: str) -> None:
    for one in selectors(parsed(expr)):
        stem = re.sub(r"_(sum|count)$", "", str(one.name))
        labels = LABELS.get(str(one.name), LABELS.get(stem))
        if labels is None:
            continue
        used = {matcher.name for matcher in one.matchers.matchers}
        assert used <= labels, f"{where}: {one.name} has no label {used - labels}"


@pytest.mark.req("R13", "R53")
@pytest.mark.parametrize(("where", "expr"), EXPRESSIONS)
def test_means_and_rates_are_of_standard_production_answers(where: str, expr: str) -> None:
    for one in selectors(parsed(expr)):
        name = str(one.name)
        if "faithfulness_" in name and "ratio" not in name and not name.startswith("aftercheck:"):
            chosen = {matcher.name: matcher.value for matcher in one.matchers.matchers}
            assert (chosen.get("quality"), chosen.get("origin")) == ("standard", "production"), where


@pytest.mark.req("U44")
def test_uids_are_fixed_and_alerts_lead_to_dashboards_that_exist() -> None:
    uids = {board["uid"] for board in BOARDS.values()}
    assert uids == {f"aftercheck-{name}" for name in ("overview", "quality", "triad", "fatigue", "pipeline", "cost")}
    assert {alert.dashboard for alert in ALERTS} <= uids
    for board in BOARDS.values():
        names = [variable["name"] for variable in board["templating"]["list"]]
        assert names == ["datasource", "app", "environment", "pages"]
        assert board["schemaVersion"] >= 36


@pytest.mark.req("U44")
def test_series_of_an_app_lead_to_its_answers_on_our_pages() -> None:
    linked = 0
    for board in BOARDS.values():
        for panel in panels(board):
            for link in panel["fieldConfig"]["defaults"].get("links", []):
                linked += 1
                assert link["url"].startswith("${pages}/ui/incidents?app=${__field.labels.app")
                for target in panel["targets"]:
                    aggregated = re.search(r"by \(([^)]*)\)", target["expr"])
                    assert aggregated is None or "app" in aggregated[1].split(", ")
    assert linked > 10


@pytest.mark.req("S32")
def test_no_panel_shows_html_and_panels_do_not_overlap() -> None:
    for name, board in BOARDS.items():
        taken: set[tuple[int, int]] = set()
        for panel in board["panels"]:
            assert panel["type"] in ("row", "timeseries", "stat", "table", "barchart", "bargauge"), name
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, f"{name}: {panel['title']}"
            taken |= cells
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids))


def test_provisioning_finds_the_datasource_and_the_dashboards() -> None:
    provisioning = ROOT / "grafana/provisioning"
    source: Any = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"][0]
    provider: Any = yaml.safe_load((provisioning / "dashboards/aftercheck.yml").read_text())["providers"][0]
    compose: Any = yaml.safe_load((ROOT / "deploy/compose.yml").read_text())
    assert (source["uid"], source["url"]) == ("prometheus", "http://prometheus:9090")
    mounts = dict(volume.split(":")[:2] for volume in compose["services"]["grafana"]["volumes"])
    assert mounts["../grafana/dashboards"] == provider["options"]["path"]
    copies: Any = yaml.safe_load((provisioning / "alerting/aftercheck.yml").read_text())
    used = {data["datasourceUid"] for rule in copies["groups"][0]["rules"] for data in rule["data"]}
    assert used == {source["uid"], "__expr__"}
