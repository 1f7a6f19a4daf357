"""Every alert through promtool: it fires, stays silent at low traffic and without data, and resolves."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from aftercheck_worker.oncall import ALERTS

pytestmark = pytest.mark.integration

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


def quality(
    name: str, values: str, more: str = "", grade: str = "standard", origin: str = "production"
) -> dict[str, str]:
    labels = f'app="shop",environment="p",evaluator="engine",quality="{grade}",origin="{origin}"{more}'
    return {f"aftercheck_{name}{{{labels}}}": values}


def steps(*parts: tuple[float, int]) -> str:
    """A counter from 0: (growth per step, steps) after one another."""
    value, told = 0.0, ["0x0"]
    for growth, count in parts:
        told.append(f"{value + growth:.6g}{growth:+.6g}x{count - 1}")
        value += growth * count
    return " ".join(told)


def faithfulness(*parts: tuple[float, float, int], **labels: str) -> dict[str, str]:
    """Counters of answers with a two-point spread: (answers per step, mean, steps) after one another."""
    squares = [(n * (m * m + 0.04), count) for n, m, count in parts]
    return {
        **quality("faithfulness_sum", steps(*((n * m, count) for n, m, count in parts)), **labels),
        **quality("faithfulness_count", steps(*((n, count) for n, _, count in parts)), **labels),
        **quality("faithfulness_raw_count", steps(*((n, count) for n, _, count in parts)), **labels),
        **quality("faithfulness_sumsq_total", steps(*squares), **labels),
    }


@pytest.mark.req("R27")
def test_the_page_fires_after_a_drop_and_resolves(tmp_path: Path) -> None:
    series = UP | faithfulness((5, 0.92, 120), (5, 0.5, 60), (5, 0.92, 180))
    promtool.check(
        tmp_path,
        series,
        [
            ("9m55s", "FaithfulnessLow", False),
            ("13m30s", "FaithfulnessLow", True),
            ("28m", "FaithfulnessLow", False),
        ],
    )


@pytest.mark.req("R27", "O-31")
def test_few_answers_never_page(tmp_path: Path) -> None:
    series = UP | faithfulness((0.05, 0.1, 400))  # three answers in five minutes, eighteen in thirty
    promtool.check(tmp_path, series, [(f"{m}m", "FaithfulnessLow", False) for m in (5, 10, 20, 30)])


@pytest.mark.req("R27")
def test_low_traffic_widens_the_window(tmp_path: Path) -> None:
    series = UP | faithfulness((0.1, 0.3, 800))  # six in five minutes, thirty-six in thirty
    promtool.check(tmp_path, series, [("10m", "FaithfulnessLow", False), ("40m", "FaithfulnessLow", True)])


@pytest.mark.req("R13", "R53")
@pytest.mark.parametrize(
    ("grade", "origin"), [("smoke", "production"), ("standard", "golden"), ("standard", "forced")]
)
def test_only_standard_production_pages(tmp_path: Path, grade: str, origin: str) -> None:
    series = UP | faithfulness((5, 0.2, 400), grade=grade, origin=origin)
    promtool.check(tmp_path, series, [("20m", "FaithfulnessLow", False), ("20m", "FaithfulnessMeanLow", False)])


@pytest.mark.req("O-33")
def test_no_data_is_not_zero(tmp_path: Path) -> None:
    names = [alert.name for alert in ALERTS if alert.enabled]
    promtool.check(tmp_path, UP, [("20m", name, False) for name in names])
    promtool.check(tmp_path, {}, [("20m", name, name == "ExporterDown") for name in names])


@pytest.mark.req("R27")
def test_one_session_counts_as_one_answer(tmp_path: Path) -> None:
    series = UP | faithfulness((0.5, 0.7, 200))
    wide = quality("faithfulness_design_effect", "30x200")
    promtool.check(tmp_path, series, [("10m", "FaithfulnessLow", True)])
    promtool.check(tmp_path, series | wide, [("10m", "FaithfulnessLow", False)])


@pytest.mark.req("R27")
def test_the_minimum_counts_independent_answers(tmp_path: Path) -> None:
    series = UP | faithfulness((0.5, 0.2, 200))  # sixty in ten minutes, low beyond any doubt
    for effect, fires in ((1.2, True), (4, False)):
        effects = quality("faithfulness_design_effect", f"{effect}x200")
        promtool.check(tmp_path, series | effects, [("10m", "FaithfulnessLow", fires)])


@pytest.mark.req("R53")
def test_two_exporters_count_once(tmp_path: Path) -> None:
    one = faithfulness((0.15, 0.2, 100))  # nine answers in five minutes
    two = {key.replace("{", f'{{instance="{n}",'): value for n in "ab" for key, value in one.items()}
    promtool.check(tmp_path, UP | two, [("7m", "FaithfulnessLow", False)])


@pytest.mark.req("R54")
def test_the_first_critical_claim_of_a_new_series_pages(tmp_path: Path) -> None:
    claims = quality("critical_claims_total", "_x300 1x400")
    promtool.check(
        tmp_path,
        UP | claims,
        [
            ("24m", "CriticalUnsupportedClaim", False),
            ("26m", "CriticalUnsupportedClaim", True),
            ("58m", "CriticalUnsupportedClaim", False),
        ],
    )


@pytest.mark.req("R54")
def test_old_critical_claims_are_not_new_after_a_gap_of_the_exporter(tmp_path: Path) -> None:
    gap = {"aftercheck_exporter_up": "1x200 _x300 1x400"}
    claims = quality("critical_claims_total", "7x200 _x300 7x400")
    promtool.check(
        tmp_path, gap | claims, [(f"{m}m", "CriticalUnsupportedClaim", False) for m in (1, 30, 42, 45, 57, 58)]
    )


FIRING: dict[str, dict[str, str]] = {
    "FaithfulnessMeanLow": faithfulness((5, 0.7, 800)),
    "HallucinationRateHigh": {
        **quality("answers_total", "0+5x1000", ',outcome="ungrounded"'),
        **quality("answers_raw_total", "0+5x1000", ',outcome="ungrounded"'),
        **quality("hallucinated_answers_total", "0+4x1000"),
    },
    "HallucinationBudgetBurning": {
        **quality("answers_total", "0+5x1000", ',outcome="grounded"'),
        **quality("answers_raw_total", "0+5x1000", ',outcome="grounded"'),
        **quality("hallucinated_answers_total", "0+1.5x1000"),
    },
    "AbstentionHigh": {
        **quality("answers_raw_total", "0+4x1000", ',outcome="abstained"'),
        **quality("answers_raw_total", "0+1x1000", ',outcome="grounded"'),
    },
    "ZeroVectorRetrieval": {'aftercheck_retrieval_same_passages_ratio{app="shop",environment="p"}': "0.9x1000"},
    "DisagreementHigh": {
        **quality("judged_claims_total", "0+2x1000", ',result="disagreed"'),
        **quality("judged_claims_total", "0+2x1000", ',result="agreed"'),
    },
    "CanaryFailing": {
        **quality("canary_answers_total", "0+1x1000", ',result="failed"'),
        **quality("canary_answers_total", "0+1x1000", ',result="passed"'),
    },
    "FatigueSlope": {
        'aftercheck_fatigue_slope_upper{app="shop",measure="faithfulness",against="turn"}': "-0.02x1000"
    },
    "EvaluationStalled": {
        "aftercheck_in_flight_oldest_age_seconds": "0+5x1000",
        "aftercheck_last_finalised_timestamp_seconds": "1x1000",
    },
    "QueueOldestAge": {'aftercheck_queue_oldest_age_seconds{queue="stream"}': "0+5x1000"},
    "DropsHigh": {
        'aftercheck_traces_dropped_total{app="shop",origin="production",reason="redis_full"}': "0+1x1000",
        'aftercheck_traces_sampled_total{app="shop",origin="production"}': "0+5x1000",
    },
    "DeadLetters": {"aftercheck_dead_letters_open": "1x1000"},
    "JudgeDown": {
        **quality("judge_answers_total", "0+2x1000", ',result="fallback"'),
        **quality("judge_answers_total", "0+1x1000", ',result="judged"'),
    },
    "SchemaMismatch": {
        'aftercheck_dead_letters_total{app="shop",origin="production",reason="version_newer"}': "_x600 1x400"
    },
}


@pytest.mark.req("R26", "R27", "R28", "U43")
@pytest.mark.parametrize("name", sorted(FIRING))
def test_it_fires(tmp_path: Path, name: str) -> None:
    promtool.check(tmp_path, UP | FIRING[name], [("58m", name, True)])


@pytest.mark.req("R28")
def test_empty_retrieval_fires_where_passages_were_usual(tmp_path: Path) -> None:
    was = quality("retrievals_total", "0+100x100 10000x40", ',result="ok"')
    gone = quality("retrievals_total", "0x100 0+100x40", ',result="empty"')
    up = {"aftercheck_exporter_up": "1x150"}
    promtool.check(tmp_path, up | was | gone, [("2h18m", "EmptyRetrieval", True)], interval="1m")
    chat = quality("retrievals_total", "0+100x140", ',result="empty"')
    promtool.check(tmp_path, up | chat, [("2h18m", "EmptyRetrieval", False)], interval="1m")


def test_every_alert_that_is_on_is_seen_firing() -> None:
    elsewhere = {"FaithfulnessLow", "CriticalUnsupportedClaim", "ExporterDown", "EmptyRetrieval"}
    assert {alert.name for alert in ALERTS if alert.enabled} == elsewhere | set(FIRING)
