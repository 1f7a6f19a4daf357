"""Alerts that must not fire: too few answers, a healthy fleet, parts that do not run; and how often one may page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from aftercheck_worker.oncall import ALERTS
from tests.integration.oncall import promtool
from tests.integration.oncall.series import MINUTES, UP, answers, counter, decided, firing, gauge

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
ON = [alert.name for alert in ALERTS if alert.enabled]


def sick(factor: float) -> dict[str, dict[str, str]]:
    """What would be an alert with enough answers; at factor 1 each is just below the number that its rule asks."""

    def only(name: str, metric: str, rate: float, more: str) -> dict[str, str]:
        return counter(name, metric, rate * factor, more)

    return {
        "FaithfulnessLow": answers("FaithfulnessLow", 0.6 * factor, 0.1),
        "FaithfulnessMeanLow": answers("FaithfulnessMeanLow", 13 * factor, 0.79, sd=0.4),
        "HallucinationRateHigh": decided("HallucinationRateHigh", 0.8 * factor, 0.15 * factor)
        if factor <= 1
        else decided("HallucinationRateHigh", 0.8 * factor, 0.8 * factor),
        "HallucinationBudgetBurning": decided("HallucinationBudgetBurning", 0.13 * factor, 0.13 * factor),
        "AbstentionHigh": only("AbstentionHigh", "answers_raw_total", 1.3, ',outcome="abstained"'),
        "ZeroVectorRetrieval": only("ZeroVectorRetrieval", "retrievals_total", 0.6, ',result="identical"'),
        "DisagreementHigh": only("DisagreementHigh", "judged_claims_total", 0.13, ',result="disagreed"'),
        "JudgeDown": only("JudgeDown", "judge_answers_total", 0.4, ',result="fallback"'),
        "CanaryFailing": only("CanaryFailing", "canary_answers_total", 0.09, ',result="failed"'),
        "DropsHigh": only("DropsHigh", "traces_dropped_total", 0.6, ',reason="redis_full"'),
    }


def every(found: dict[str, dict[str, str]]) -> dict[str, str]:
    return UP | {key: values for one in found.values() for key, values in one.items()}


@pytest.mark.req("R27", "O-31", "O-32")
def test_few_answers_fire_nothing(tmp_path: Path) -> None:
    asked = [(at, name, False) for name in ON for at in ("50m", "3h", "7h50m")]

    promtool.check(tmp_path, every(sick(1)), asked, interval="1m")


@pytest.mark.req("O-31")
def test_more_of_the_same_fires(tmp_path: Path) -> None:
    """Else the test above would not be about the number of answers."""
    found = sick(2)
    asked = [("7h50m", firing(name, name)) for name in found]

    told = promtool.values(tmp_path, every(found), asked, interval="1m")

    assert {name for name in found if ("7h50m", firing(name, name)) in told} == set(found)


def fleet() -> dict[str, str]:
    """A service that is well, every part of it running."""
    shop = 'app="shop",environment="p"'
    slope = 'app="shop",measure="faithfulness",against='
    return {
        **UP,
        **gauge("faithfulness_design_effect", f'{shop},evaluator="shop",quality="standard"', (1.2, MINUTES)),
        **gauge("retrieval_same_passages_ratio", shop, (0.1, MINUTES)),
        **gauge("fatigue_slope_upper", f'{slope}"turn"', (0.004, MINUTES)),
        **gauge("fatigue_slope_upper", f'{slope}"context_tokens"', (-0.001, MINUTES)),
        **gauge("queue_oldest_age_seconds", 'queue="stream"', (4, MINUTES)),
        **gauge("in_flight_oldest_age_seconds", "", (12, MINUTES)),
        **gauge("dead_letters_open", "", (0, MINUTES)),
        "aftercheck_last_finalised_timestamp_seconds": f"0+60x{MINUTES}",
        **answers("shop", 30, 0.92),
        **counter("shop", "answers_total", 27, ',outcome="grounded"'),
        **counter("shop", "answers_raw_total", 27, ',outcome="grounded"'),
        **counter("shop", "answers_raw_total", 2, ',outcome="abstained"'),
        **decided("shop", 1, 1),
        **counter("shop", "critical_claims_total", 0),
        **counter("shop", "retrievals_total", 29, ',result="ok"'),
        **counter("shop", "retrievals_total", 1, ',result="empty"'),
        **counter("shop", "canary_answers_total", 1, ',result="passed"'),
        **counter("shop", "judged_claims_total", 5, ',result="agreed"'),
        **counter("shop", "judged_claims_total", 0.5, ',result="disagreed"'),
        **counter("shop", "judge_answers_total", 5, ',result="judged"'),
        **counter("shop", "judge_answers_total", 0.5, ',result="fallback"'),
        **counter("shop", "traces_sampled_total", 30),
        **counter("shop", "traces_unsampled_total", 570),
        **counter("shop", "traces_dropped_total", 1, ',reason="redis_full"'),
        **counter("shop", "dead_letters_total", 0, ',reason="version_newer"'),
    }


@pytest.mark.req("R27", "U43")
def test_a_healthy_fleet_fires_nothing(tmp_path: Path) -> None:
    asked = [(at, name, False) for name in ON for at in ("10m", "1h", "7h50m")]

    promtool.check(tmp_path, fleet(), asked, interval="1m")


@pytest.mark.req("R54", "O-38")
def test_critical_claims_are_one_alert_per_app_however_many(tmp_path: Path) -> None:
    """One alert, hence one incident and one page, for as long as it goes on; Alertmanager repeats after hours."""
    claims: dict[str, str] = {}
    for number in range(20):
        more = f',prompt_version="{number}",model="m{number % 3}"'
        claims |= counter("shop", "critical_claims_total", 3 + number, more)
    expr = promtool.firing("CriticalUnsupportedClaim")
    times = ("20m", "1h", "2h30m")

    told = promtool.values(tmp_path, UP | claims, [(at, expr) for at in times], interval="1m")

    assert told == {(at, expr): [1.0] for at in times}
    routing: Any = yaml.safe_load((ROOT / "deploy/alertmanager/alertmanager.yml").read_text())["route"]
    assert {"alertname", "app"} <= set(routing["group_by"]) <= {"alertname", "app", "environment", "evaluator"}
    assert routing["repeat_interval"] == "4h"
