"""The generated files are fresh, and every alert has what the person on call needs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
import yaml

from aftercheck_worker.exporter import metrics
from aftercheck_worker.oncall import ALERTS, RECORDINGS
from aftercheck_worker.oncall.rule import Severity

ROOT = Path(__file__).parents[3]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deploy_generate", ROOT / "deploy/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_files_are_what_the_source_says() -> None:
    made = generator()
    for name, text in made.files(made.Links()).items():
        assert (ROOT / name).read_text() == text, f"{name}: run make alerts"


@pytest.mark.req("U42")
def test_severities_are_pagerdutys_and_the_grafana_copies_are_off() -> None:
    assert {alert.severity for alert in ALERTS} <= set(get_args(Severity))
    copies: Any = yaml.safe_load((ROOT / "grafana/provisioning/alerting/aftercheck.yml").read_text())
    rules = copies["groups"][0]["rules"]
    assert [rule["title"] for rule in rules] == [alert.name for alert in ALERTS]
    assert all(rule["isPaused"] for rule in rules)


@pytest.mark.req("R27")
def test_the_literal_rule_is_the_only_one_that_is_off() -> None:
    assert [alert.name for alert in ALERTS if not alert.enabled] == ["FaithfulnessLiteral"]
    assert "FaithfulnessLiteral" not in (ROOT / "deploy/prometheus/rules/aftercheck.yml").read_text()


@pytest.mark.req("U43")
@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_has_a_runbook_and_links(alert: Any) -> None:
    page = (ROOT / f"docs/runbooks/{alert.name}.md").read_text()
    assert "## What to do" in page
    found = generator().Links().annotations(alert)
    assert {"summary", "description", "runbook_url", "dashboard_url", "traces_url"} == set(found)
    assert found["runbook_url"].endswith(f"/{alert.name}")


def test_every_metric_of_a_rule_is_one_of_the_exporter() -> None:
    parser = pytest.importorskip("promql_parser")
    known = {metric.full_name for metric in metrics.ALL}
    known |= {
        f"{metric.full_name}_{end}" for metric in metrics.ALL if metric.kind == "summary" for end in ("sum", "count")
    }
    known |= {rule.record for rule in RECORDINGS}
    for expr in [rule.expr for rule in ALERTS] + [rule.expr for rule in RECORDINGS]:
        names = set(selectors(parser.parse(expr)))
        assert names
        assert names <= known, expr


def selectors(node: Any) -> list[str]:
    """Names of the series that a parsed expression reads."""
    if type(node).__name__ == "VectorSelector":
        return [str(node.name)]
    inner = [getattr(node, part, None) for part in ("expr", "lhs", "rhs", "param", "vector_selector", "vs")]
    inner += list(getattr(node, "args", None) or [])
    return [name for child in inner if child is not None for name in selectors(child)]


@pytest.mark.req("R53")
def test_pages_on_quality_read_standard_production_only() -> None:
    for rule in RECORDINGS:
        if "_total{" in rule.expr or "_sum{" in rule.expr:
            assert 'quality="standard"' in rule.expr
            assert 'origin="production"' in rule.expr
