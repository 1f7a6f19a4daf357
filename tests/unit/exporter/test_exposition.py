"""The scrape shows what was read and nothing else: no data, no series."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from aftercheck_worker.exporter import metrics
from aftercheck_worker.exporter.exposition import ReadingCollector, render
from aftercheck_worker.exporter.reading import (
    EvaluatorInfo,
    JudgedWindow,
    Queue,
    QueueReading,
    Reading,
    StoreReading,
    Total,
    Window,
)
from aftercheck_worker.storage import totals

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]

TOTAL = Total(
    metric=totals.FAITHFULNESS_SUM,
    app="shop",
    environment="",
    model="m",
    prompt_version="p",
    evaluator="engine",
    origin="production",
    key="",
    value=15.0,
)


def scrape(*readings: Reading, values: int = 100) -> str:
    collector = ReadingCollector(values)
    for reading in readings:
        collector.show(reading)
    return render(collector).decode()


def parse(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(text: str, name: str, **labels: str) -> float:
    found = [
        number
        for (sample, pairs), number in parse(text).items()
        if sample == name and labels.items() <= dict(pairs).items()
    ]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return found[0]


def reading(store: StoreReading | None, queues: QueueReading | None = None) -> Reading:
    return Reading(at=1.0, seconds=0.1, store=store, queues=queues)


def total(metric: str, number: float, **labels: str) -> Total:
    return msgspec.structs.replace(TOTAL, metric=metric, value=number, **labels)


@pytest.mark.req("P8")
def test_an_empty_store_gives_no_quality_series_and_no_zero() -> None:
    text = scrape(reading(StoreReading(), QueueReading()))

    names = {name for name, _ in parse(text)}
    assert not {name for name in names if "faithfulness" in name or "hallucination" in name or "answers" in name}
    assert "aftercheck_last_finalised_timestamp_seconds" not in names
    assert value(text, "aftercheck_exporter_up") == 1


@pytest.mark.req("P8")
def test_a_silent_postgres_takes_its_series_away() -> None:
    store = StoreReading(totals=(TOTAL, total(totals.FAITHFULNESS_COUNT, 20.0)), last_finalised=5.0)
    text = scrape(reading(store, QueueReading()), reading(None, QueueReading()))

    names = {name for name, _ in parse(text)}
    assert not {name for name in names if "exporter" not in name}
    assert value(text, "aftercheck_exporter_up") == 0
    assert value(text, "aftercheck_exporter_dependency_up", dependency="postgres") == 0
    assert value(text, "aftercheck_exporter_dependency_up", dependency="redis") == 1


def test_a_summary_has_sum_and_count_with_all_labels() -> None:
    store = StoreReading(
        totals=(TOTAL, total(totals.FAITHFULNESS_COUNT, 20.0)),
        evaluators=(EvaluatorInfo(name="engine", version="ab", quality="standard"),),
    )
    text = scrape(reading(store))

    assert value(text, "aftercheck_faithfulness_sum", app="shop", model="m", quality="standard") == 15
    assert value(text, "aftercheck_faithfulness_count", prompt_version="p", origin="production") == 20
    assert value(text, "aftercheck_evaluator_info", evaluator="engine", version="ab") == 1


@pytest.mark.req("R13")
def test_smoke_evaluators_are_labelled_on_counters_and_gauges() -> None:
    store = StoreReading(
        totals=(total(totals.ANSWERS, 3.0, evaluator="lexical-v1", key="grounded"),),
        windows=(
            Window(
                app="shop",
                environment="",
                evaluator="lexical-v1",
                quality="smoke",
                evaluations=3,
                faithfulness=1.0,
                hallucination=0.0,
            ),
        ),
        evaluators=(EvaluatorInfo(name="lexical-v1", version="ab", quality="smoke"),),
    )
    text = scrape(reading(store))

    assert value(text, "aftercheck_answers_total", quality="smoke", outcome="grounded") == 3
    assert value(text, "aftercheck_faithfulness_ratio", quality="smoke", app="shop") == 1
    assert value(text, "aftercheck_hallucination_ratio", quality="smoke") == 0
    assert value(text, "aftercheck_window_evaluations", quality="smoke") == 3


@pytest.mark.req("S31")
def test_values_beyond_the_allow_list_are_summed_as_other() -> None:
    store = StoreReading(totals=tuple(total(totals.ANSWERS, 1.0, app=f"app{n}", key="grounded") for n in range(50)))
    text = scrape(reading(store), values=3)

    assert value(text, "aftercheck_answers_total", app="other") == 47
    assert sum(name == "aftercheck_answers_total" for name, _ in parse(text)) == 4


def test_windows_that_fall_together_are_weighted_by_their_counts() -> None:
    rows = [(f"app{n}", n) for n in range(1, 4)]
    store = StoreReading(
        totals=tuple(total(totals.ANSWERS, 1.0, app=app, key="grounded") for app, _ in rows),
        windows=tuple(
            Window(
                app=app,
                environment="",
                evaluator="engine",
                quality="standard",
                evaluations=n * 10,
                faithfulness=n / 10,
                hallucination=0.0,
            )
            for app, n in rows
        ),
    )
    text = scrape(reading(store), values=1)

    assert value(text, "aftercheck_window_evaluations", app="other") == 50
    assert value(text, "aftercheck_faithfulness_ratio", app="other") == pytest.approx((20 * 0.2 + 30 * 0.3) / 50)


@pytest.mark.req("S31")
@given(st.text(st.characters(codec=None), max_size=40))
def test_no_label_breaks_the_scrape(name: str) -> None:
    store = StoreReading(totals=(total(totals.ANSWERS, 1.0, app=name, model=name, key=name),))

    assert value(scrape(reading(store)), "aftercheck_answers_total") == 1


def test_an_empty_queue_has_a_depth_and_no_age() -> None:
    queues = QueueReading(queues=(Queue(name="stream", depth=0), Queue(name="due", depth=2, oldest=1.5)))
    text = scrape(reading(None, queues))

    assert value(text, "aftercheck_queue_depth", queue="stream") == 0
    assert value(text, "aftercheck_queue_oldest_age_seconds") == 1.5


@pytest.mark.req("U41")
def test_metric_names_follow_the_rules_of_prometheus() -> None:
    assert len({metric.name for metric in metrics.ALL}) == len(metrics.ALL)
    for metric in metrics.ALL:
        name = metric.full_name
        assert re.fullmatch(r"aftercheck_[a-z][a-z0-9_]*", name)
        assert name.endswith("_total") == (metric.kind == "counter"), name
        assert not re.search(r"_(sum|count|bucket|milliseconds|ms|percent)$", name), name
        assert metric.help.endswith("."), name
        assert metric.kind == "counter" or "_total" not in name


def test_every_stored_metric_is_exported() -> None:
    assert {name for metric in metrics.FROM_TOTALS for name in metric.stored} == totals.METRICS - {
        totals.INTAKE_STAMP
    }


@pytest.mark.req("S14")
def test_canary_accuracy_shows_from_fifty_on_with_its_interval() -> None:
    few = scrape(Reading(at=1.0, seconds=0.1, queues=QueueReading(canaries=(True,) * 49)))
    many = scrape(Reading(at=1.0, seconds=0.1, queues=QueueReading(canaries=(True,) * 45 + (False,) * 5)))

    assert value(few, "aftercheck_judge_canaries") == 49
    assert "aftercheck_judge_canary_accuracy" not in few
    assert value(many, "aftercheck_judge_canary_accuracy_ratio") == 0.9
    # Wilson's interval of 45 in 50, e.g. from statsmodels' proportion_confint
    assert value(many, "aftercheck_judge_canary_accuracy_lower") == pytest.approx(0.7864, abs=1e-4)
    assert value(many, "aftercheck_judge_canary_accuracy_upper") == pytest.approx(0.9565, abs=1e-4)


def test_nothing_of_a_judge_is_shown_where_there_is_none() -> None:
    without = scrape(Reading(at=1.0, seconds=0.1, store=StoreReading(), queues=QueueReading()))
    waiting = StoreReading(in_flight={"judging": 3}, oldest_judging=7.0)
    held = scrape(Reading(at=1.0, seconds=0.1, store=waiting, queues=QueueReading()))

    assert "judge" not in without
    assert value(held, "aftercheck_judge_waiting_answers") == 3
    assert value(held, "aftercheck_judge_waiting_oldest_age_seconds") == 7.0


def test_judged_means_keep_criterion_and_method_apart() -> None:
    window = JudgedWindow(
        app="shop",
        environment="",
        evaluator="engine",
        quality="standard",
        criterion="groundedness",
        method="judge",
        evaluations=4,
        mean=0.5,
    )
    other = msgspec.structs.replace(window, method="encoder", mean=0.75)
    text = scrape(Reading(at=1.0, seconds=0.1, store=StoreReading(judged=(window, other))))

    assert value(text, "aftercheck_groundedness_ratio", method="judge") == 0.5
    assert value(text, "aftercheck_groundedness_ratio", method="encoder") == 0.75
    assert value(text, "aftercheck_judged_window_evaluations", criterion="groundedness", method="judge") == 4
    assert "aftercheck_context_relevance_ratio" not in text


@pytest.mark.req("R26", "P4")
def test_traces_that_a_full_stream_refused_show_without_intake_and_without_postgres() -> None:
    queues = QueueReading(refused={("shop", "redis_full"): 7})
    labels = {"app": "shop", "origin": "production"}
    alone = scrape(reading(None, queues))
    assert value(alone, "aftercheck_traces_dropped_total", **labels, reason="redis_full") == 7
    store = StoreReading(
        totals=(total(totals.DROPPED, 3, app="shop", evaluator="", model="", prompt_version="", key="buffer_full"),)
    )
    both = scrape(reading(store, queues))
    assert value(both, "aftercheck_traces_dropped_total", **labels, reason="redis_full") == 7
    assert value(both, "aftercheck_traces_dropped_total", **labels, reason="buffer_full") == 3
