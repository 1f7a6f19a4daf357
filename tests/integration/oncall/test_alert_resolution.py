"""Every alert ends when its cause has ended, while the service goes on answering."""

from __future__ import annotations

from pathlib import Path

import pytest

from aftercheck_worker.oncall import ALERTS
from tests.integration.oncall import promtool
from tests.integration.oncall.series import UP, answers, counter, decided, firing, gauge

pytestmark = pytest.mark.integration

SICK, WELL = 100, 380
"""Minutes of the cause, and minutes after it."""


def then(rate: float, later: float) -> list[tuple[float, int]]:
    return [(rate, SICK), (later, WELL)]


def courses() -> dict[str, dict[str, str]]:
    """The cause of each alert, as an app of the alert's name, and its end."""
    slope = 'app="FatigueSlope",measure="faithfulness",against="turn"'
    bad, good = answers("FaithfulnessLow", then(30, 0), 0.5), answers("FaithfulnessLow", then(0, 30), 0.95)
    dull, fine = answers("FaithfulnessMeanLow", then(60, 0), 0.79), answers("FaithfulnessMeanLow", then(0, 60), 0.9)
    return {
        "FaithfulnessLow": added(bad, good),
        "FaithfulnessMeanLow": added(dull, fine),
        "HallucinationRateHigh": decided("HallucinationRateHigh", then(30, 30), then(27, 0.3)),
        "HallucinationBudgetBurning": decided("HallucinationBudgetBurning", then(30, 30), then(12, 0.3)),
        "CriticalUnsupportedClaim": counter("CriticalUnsupportedClaim", "critical_claims_total", then(1, 0)),
        "AbstentionHigh": {
            **counter("AbstentionHigh", "answers_raw_total", then(9, 1), ',outcome="abstained"'),
            **counter("AbstentionHigh", "answers_raw_total", then(1, 9), ',outcome="grounded"'),
        },
        "ZeroVectorRetrieval": gauge(
            "retrieval_same_passages_ratio", 'app="ZeroVectorRetrieval",environment="p"', (0.9, SICK), (0.1, WELL)
        ),
        "DisagreementHigh": {
            **counter("DisagreementHigh", "judged_claims_total", then(5, 0), ',result="disagreed"'),
            **counter("DisagreementHigh", "judged_claims_total", then(5, 10), ',result="agreed"'),
        },
        "JudgeDown": {
            **counter("JudgeDown", "judge_answers_total", then(5, 0), ',result="fallback"'),
            **counter("JudgeDown", "judge_answers_total", then(1, 6), ',result="judged"'),
        },
        "CanaryFailing": {
            **counter("CanaryFailing", "canary_answers_total", then(1, 0), ',result="failed"'),
            **counter("CanaryFailing", "canary_answers_total", then(1, 2), ',result="passed"'),
        },
        "FatigueSlope": gauge("fatigue_slope_upper", slope, (-0.02, SICK), (0.01, WELL)),
        "EvaluationStalled": {
            **gauge("in_flight_oldest_age_seconds", "", (900, SICK), (3, WELL)),
            "aftercheck_last_finalised_timestamp_seconds": f"1x{SICK - 1} {SICK * 60}+60x{WELL}",
        },
        "QueueOldestAge": gauge("queue_oldest_age_seconds", 'queue="stream"', (900, SICK), (3, WELL)),
        "DropsHigh": {
            **counter("DropsHigh", "traces_dropped_total", then(10, 0), ',reason="redis_full"'),
            **counter("DropsHigh", "traces_sampled_total", then(50, 50)),
        },
        "DeadLetters": gauge("dead_letters_open", "", (2, SICK), (0, WELL)),
        "SchemaMismatch": counter("SchemaMismatch", "dead_letters_total", then(1, 0), ',reason="version_newer"'),
    }


def added(*found: dict[str, str]) -> dict[str, str]:
    """Counters of two kinds of answers as series of two models: the rules add them up."""
    return {
        key.replace('origin="', f'model="{number}",origin="'): values
        for number, one in enumerate(found)
        for key, values in one.items()
    }


@pytest.mark.req("R27", "R54", "U43")
def test_every_alert_fires_and_ends(tmp_path: Path) -> None:
    found = courses()
    series = UP | {key: values for one in found.values() for key, values in one.items()}
    times = {"sick": "1h38m", "well": "7h50m"}
    asked = [(at, firing(name, name)) for name in found for at in times.values()]

    told = promtool.values(tmp_path, series, asked, interval="1m")

    fired = {when: {name for name in found if (at, firing(name, name)) in told} for when, at in times.items()}
    assert fired == {"sick": set(found), "well": set()}


@pytest.mark.req("O-33")
def test_a_lost_exporter_fires_and_ends(tmp_path: Path) -> None:
    lost = {"aftercheck_exporter_up": "1x9 _x20 1x20"}
    dead = {"aftercheck_exporter_up": "1x9 0x19 1x20"}
    for series in (lost, dead):
        promtool.check(
            tmp_path,
            series,
            [("8m", "ExporterDown", False), ("25m", "ExporterDown", True), ("40m", "ExporterDown", False)],
            interval="1m",
        )


@pytest.mark.req("R28")
def test_empty_retrieval_ends(tmp_path: Path) -> None:
    full = counter("shop", "retrievals_total", [(20, 240), (0, 60), (20, 180)], ',result="ok"')
    empty = counter("shop", "retrievals_total", [(0, 240), (20, 60), (0, 180)], ',result="empty"')

    promtool.check(
        tmp_path,
        UP | full | empty,
        [("3h50m", "EmptyRetrieval", False), ("4h50m", "EmptyRetrieval", True), ("6h", "EmptyRetrieval", False)],
        interval="1m",
    )


def test_every_alert_that_is_on_is_seen_ending() -> None:
    elsewhere = {"ExporterDown", "EmptyRetrieval"}
    assert {alert.name for alert in ALERTS if alert.enabled} == elsewhere | set(courses())
