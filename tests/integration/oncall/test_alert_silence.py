"""Alerts that must not fire: too few answers, a healthy fleet, parts that do not run; and how often one may page."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from aftercheck_worker.oncall import ALERTS

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
ON = [alert.name for alert in ALERTS if alert.enabled]
UP = {"aftercheck_exporter_up": "1x4000"}


def sibling(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"oncall_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


promtool = sibling("promtool")


def counter(app: str, name: str, per_minute: float, more: str = "", minutes: int = 480) -> dict[str, str]:
    """A counter of one app that grows steadily, a value a minute."""
    labels = f'app="{app}",environment="p",evaluator="{app}",quality="standard",origin="production"{more}'
    return {f"aftercheck_{name}{{{labels}}}": f"1000+{per_minute}x{minutes}"}


def answers(app: str, per_minute: float, mean: float, sd: float = 0.2) -> dict[str, str]:
    """The counters of faithfulness."""
    return {
        **counter(app, "faithfulness_sum", per_minute * mean),
        **counter(app, "faithfulness_count", per_minute),
        **counter(app, "faithfulness_raw_count", per_minute),
        **counter(app, "faithfulness_sumsq_total", per_minute * (mean**2 + sd**2)),
    }


def decided(app: str, per_minute: float, hallucinated: float) -> dict[str, str]:
    """Answers that were decided, and the share of them that holds a hallucination."""
    return {
        **counter(app, "answers_total", per_minute, ',outcome="ungrounded"'),
        **counter(app, "answers_raw_total", per_minute, ',outcome="ungrounded"'),
        **counter(app, "hallucinated_answers_total", per_minute * hallucinated),
    }


FEW: dict[str, tuple[float, dict[str, str]]] = {
    # alert: answers a minute that are just too few, and what would be an alert with more of them
    "FaithfulnessLow": (0.6, answers("FaithfulnessLow", 0.6, 0.1)),
    "FaithfulnessMeanLow": (13, answers("FaithfulnessMeanLow", 13, 0.79, sd=0.4)),
    "HallucinationRateHigh": (0.8, decided("HallucinationRateHigh", 0.8, 0.19)),
    "HallucinationBudgetBurning": (0.13, decided("HallucinationBudgetBurning", 0.13, 1.0)),
    "AbstentionHigh": (1.3, counter("AbstentionHigh", "answers_raw_total", 1.3, ',outcome="abstained"')),
    "ZeroVectorRetrieval": (0.6, counter("ZeroVectorRetrieval", "retrievals_total", 0.6, ',result="identical"')),
    "DisagreementHigh": (0.13, counter("DisagreementHigh", "judged_claims_total", 0.13, ',result="disagreed"')),
    "CanaryFailing": (0.09, counter("CanaryFailing", "canary_answers_total", 0.09, ',result="failed"')),
    "DropsHigh": (0.6, counter("DropsHigh", "traces_dropped_total", 0.6, ',reason="redis_full"')),
}


@pytest.mark.req("R27", "O-31", "O-32")
def test_few_answers_fire_nothing(tmp_path: Path) -> None:
    series = UP | {key: values for _, one in FEW.values() for key, values in one.items()}

    promtool.check(
        tmp_path, series, [(at, name, False) for name in ON for at in ("50m", "2h", "6h30m", "7h50m")], interval="1m"
    )


@pytest.mark.req("O-31")
@pytest.mark.parametrize("name", sorted(set(FEW) - {"HallucinationRateHigh"}))
def test_more_of_the_same_fires(tmp_path: Path, name: str) -> None:
    """Else the test above would not be about the number of answers."""
    rate, one = FEW[name]
    more = {key: values.replace(values.split("+")[1].split("x")[0], "") for key, values in one.items()}
    grown = {
        key: f"1000+{float(values.split('+')[1].split('x')[0]) * 2}x480" for key, values in one.items() if more[key]
    }
    assert rate > 0

    promtool.check(tmp_path, UP | grown, [("7h50m", name, True)], interval="1m")


def fleet() -> dict[str, str]:
    """A service that is well, every part of it running."""
    gauges = {
        'aftercheck_faithfulness_design_effect{app="shop",environment="p",evaluator="shop",quality="standard"}': 1.2,
        'aftercheck_retrieval_same_passages_ratio{app="shop",environment="p"}': 0.1,
        'aftercheck_fatigue_slope_upper{app="shop",measure="faithfulness",against="turn"}': 0.004,
        'aftercheck_fatigue_slope_upper{app="shop",measure="faithfulness",against="context_tokens"}': -0.001,
        'aftercheck_queue_oldest_age_seconds{queue="stream"}': 4,
        "aftercheck_in_flight_oldest_age_seconds": 12,
        "aftercheck_dead_letters_open": 0,
    }
    return {
        **UP,
        **{key: f"{value}x480" for key, value in gauges.items()},
        "aftercheck_last_finalised_timestamp_seconds": "0+60x480",
        **answers("shop", 30, 0.92),
        **counter("shop", "answers_total", 27, ',outcome="grounded"'),
        **counter("shop", "answers_total", 1, ',outcome="ungrounded"'),
        **counter("shop", "answers_raw_total", 27, ',outcome="grounded"'),
        **counter("shop", "answers_raw_total", 1, ',outcome="ungrounded"'),
        **counter("shop", "answers_raw_total", 2, ',outcome="abstained"'),
        **counter("shop", "hallucinated_answers_total", 1),
        **counter("shop", "critical_claims_total", 0),
        **counter("shop", "retrievals_total", 29, ',result="ok"'),
        **counter("shop", "retrievals_total", 1, ',result="empty"'),
        **counter("shop", "canary_answers_total", 1, ',result="passed"'),
        **counter("shop", "judged_claims_total", 5, ',result="agreed"'),
        **counter("shop", "judged_claims_total", 0.5, ',result="disagreed"'),
        **counter("shop", "traces_sampled_total", 30),
        **counter("shop", "traces_unsampled_total", 570),
        **counter("shop", "traces_dropped_total", 1, ',reason="redis_full"'),
        **counter("shop", "dead_letters_total", 0, ',reason="version_newer"'),
    }


@pytest.mark.req("R27", "U43")
def test_a_healthy_fleet_fires_nothing(tmp_path: Path) -> None:
    promtool.check(
        tmp_path, fleet(), [(at, name, False) for name in ON for at in ("10m", "1h", "7h50m")], interval="1m"
    )


@pytest.mark.req("R54", "O-38")
def test_critical_claims_are_one_alert_per_app_however_many(tmp_path: Path) -> None:
    """One alert, hence one incident and one page, for as long as it goes on; Alertmanager repeats after hours."""
    claims: dict[str, str] = {}
    for number in range(20):
        more = f',prompt_version="{number}",model="m{number % 3}"'
        claims |= counter("shop", "critical_claims_total", 3 + number, more)

    promtool.check(tmp_path, UP | claims, [(f"{m}m", "CriticalUnsupportedClaim", True) for m in (20, 120, 400)], "1m")
    counted = promtool.values(
        tmp_path, UP | claims, [("2h", promtool.firing("CriticalUnsupportedClaim"))], interval="1m"
    )
    assert list(counted.values()) == [[1.0]]
    routing: Any = yaml.safe_load((ROOT / "deploy/alertmanager/alertmanager.yml").read_text())["route"]
    assert "alertname" in routing["group_by"]
    assert "app" in routing["group_by"]
    assert set(routing["group_by"]) <= {"alertname", "app", "environment", "evaluator"}
    assert routing["repeat_interval"] == "4h"
