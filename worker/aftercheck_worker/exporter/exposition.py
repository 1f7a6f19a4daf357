"""Turns a reading into Prometheus text. Pure: no connection, no clock.

No data = no series: a mean without answers, or a store that did not answer, is absent, never 0 (P8, "false zero").
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from aftercheck_worker.exporter import metrics
from aftercheck_worker.exporter.labels import LabelSets, scrub
from aftercheck_worker.exporter.metrics import Metric
from aftercheck_worker.exporter.reading import Fatigue, QueueReading, Reading, StoreReading, Total
from aftercheck_worker.feedback import rate
from aftercheck_worker.storage import totals

Labels = tuple[str, ...]
MIN_CANARIES: Final = 50
"""Below it an accuracy would say more than is known (S14)."""
BASE = ("app", "environment", "model", "prompt_version", "evaluator", "origin")
"""Label columns of the `total` table, in order."""
COLLAPSE = ("prompt_version", "model", "environment", "app")
"""Which label becomes `other` first when there are too many combinations."""


class ReadingCollector(Collector):
    """prometheus_client collector over the newest reading.

    Args:
        values: most values of one label; the rest is `other`.
        sets: most label combinations.
    """

    def __init__(self, values: int, sets: int = 2_000) -> None:
        self._limits = LabelSets(values, sets, BASE, COLLAPSE)
        self._reading: Reading | None = None

    def show(self, reading: Reading) -> None:
        """Make `reading` the one that is collected."""
        counted = (*(reading.store.totals if reading.store is not None else ()), *_refused(reading))
        self._limits.admit((_base(total), 1.0) for total in counted)
        self._reading = reading

    def collect(self) -> Iterator[Family]:
        """Yield the metric families of the newest reading."""
        reading = self._reading
        if reading is None:
            return
        yield from _exporter(reading)
        if reading.store is not None:
            yield from _totals(reading.store, _refused(reading), self._limits)
            yield from _store_gauges(reading.store, self._limits)
        else:  # a full stream and a Postgres that is away come together: its drops are shown all the same
            yield from _totals(StoreReading(), _refused(reading), self._limits)
        if reading.queues is not None:
            yield from _queue_gauges(reading.queues)


def _refused(reading: Reading) -> tuple[Total, ...]:
    """Traces that the full stream refused; senders count them in Redis, where no intake is needed to see them."""
    counted = reading.queues.refused if reading.queues is not None else {}
    blank = {"environment": "", "model": "", "prompt_version": "", "evaluator": "", "origin": "production"}
    return tuple(
        Total(metric=totals.DROPPED, app=app, key=reason, value=float(number), **blank)
        for (app, reason), number in sorted(counted.items())
    )


def render(collector: ReadingCollector) -> bytes:
    """Return the scrape as text format 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry)


def _base(total: Total) -> Labels:
    return tuple(scrub(str(getattr(total, name))) for name in BASE)


def _totals(store: StoreReading, refused: Sequence[Total], limits: LabelSets) -> Iterator[Family]:
    quality = {info.name: info.quality for info in store.evaluators}
    stored: dict[str, list[Total]] = {}
    for total in (*store.totals, *refused):
        stored.setdefault(total.metric, []).append(total)
    for metric in metrics.FROM_TOTALS:
        parts = [_summed(metric, stored.get(name, ()), limits, quality) for name in metric.stored]
        if any(parts):
            yield _family(metric, parts)


def _summed(
    metric: Metric, rows: Iterable[Total], limits: LabelSets, quality: Mapping[str, str]
) -> dict[Labels, float]:
    found: dict[Labels, float] = {}
    for row in rows:
        values: dict[str, str] = dict(zip(BASE, limits.labels(_base(row)), strict=True))
        values["quality"] = quality.get(row.evaluator, "") if row.evaluator else ""
        if metric.key:
            values[metric.key] = scrub(row.key)
        labels = tuple(values[name] for name in metric.labels)
        found[labels] = found.get(labels, 0.0) + row.value
    return found


def _family(metric: Metric, parts: Sequence[Mapping[Labels, float]]) -> Family:
    name, labels = f"aftercheck_{metric.name}", metric.labels
    if metric.kind == "summary":
        summary = SummaryMetricFamily(name, metric.help, labels=labels)
        sums, counts = parts
        for values, count in sorted(counts.items()):
            summary.add_metric(values, count_value=count, sum_value=sums.get(values, 0.0))  # type: ignore[arg-type]
        return summary
    if metric.kind == "counter":
        counter = CounterMetricFamily(name, metric.help, labels=labels)
        for values, value in sorted(parts[0].items()):
            counter.add_metric(values, value)
        return counter
    gauge = GaugeMetricFamily(name, metric.help, labels=labels)
    for values, value in sorted(parts[0].items()):
        gauge.add_metric(values, value)
    return gauge


def _gauge(metric: Metric, values: Mapping[Labels, float | None]) -> Iterator[Family]:
    """Yield the family, unless nothing is known."""
    known = {labels: value for labels, value in values.items() if value is not None}
    if known:
        yield _family(metric, [known])


def _store_gauges(store: StoreReading, limits: LabelSets) -> Iterator[Family]:
    yield from _windows(store, limits)
    yield from _judged(store, limits)
    yield from _oncall(store, limits)
    yield from _gauge(
        metrics.EVALUATOR_INFO,
        {(scrub(info.name), scrub(info.version), info.quality): 1.0 for info in store.evaluators},
    )
    yield from _gauge(metrics.IN_FLIGHT, {(state,): float(count) for state, count in store.in_flight.items()})
    yield from _gauge(metrics.LAST_FINALISED, {(): store.last_finalised})
    yield from _gauge(metrics.OLDEST_IN_FLIGHT, {(): store.oldest_in_flight})
    yield from _gauge(metrics.DEAD_LETTERS_OPEN, {(): float(store.dead_letters_open)})


def _oncall(store: StoreReading, limits: LabelSets) -> Iterator[Family]:
    """Gauges that only the alert rules need. Under `other` the most careful value stays."""
    effects: dict[Labels, float | None] = {}
    for found in store.design_effects:
        base = limits.labels((scrub(found.app), scrub(found.environment), "", "", scrub(found.evaluator), ""))
        labels = (base[0], base[1], base[4], found.quality)
        effects[labels] = max(found.effect, effects.get(labels) or 1.0)
    yield from _gauge(metrics.DESIGN_EFFECT, effects)
    same: dict[Labels, float | None] = {}
    for group in store.same_passages:
        base = limits.labels((scrub(group.app), scrub(group.environment), "", "", "", ""))
        same[base[:2]] = max(group.share, same.get(base[:2]) or 0.0)
    yield from _gauge(metrics.RETRIEVAL_SAME, same)
    yield from _fatigue(store.fatigue, limits)


def _fatigue(fatigue: Fatigue, limits: LabelSets) -> Iterator[Family]:
    """Slopes and curves. Under `other` the app whose quality falls most surely stays."""
    careful = sorted(fatigue.slopes, key=lambda slope: -math.inf if slope.upper is None else -slope.upper)
    slopes = {(_app(limits, slope.app), slope.measure, slope.against): slope for slope in careful}
    yield from _gauge(metrics.FATIGUE_SLOPE, {labels: slope.slope for labels, slope in slopes.items()})
    yield from _gauge(metrics.FATIGUE_UPPER, {labels: slope.upper for labels, slope in slopes.items()})
    yield from _gauge(metrics.FATIGUE_SESSIONS, {labels: float(slope.sessions) for labels, slope in slopes.items()})
    means: dict[Labels, float | None] = {}
    for step in fatigue.steps:
        means[_app(limits, step.app), step.measure, step.against, step.step] = step.mean
    yield from _gauge(metrics.FATIGUE_MEAN, means)


def _app(limits: LabelSets, app: str) -> str:
    return limits.labels((scrub(app), "", "", "", "", ""))[0]


def _windows(store: StoreReading, limits: LabelSets) -> Iterator[Family]:
    """Merge windows whose labels fall together under `other`, weighted by their counts."""
    merged: dict[Labels, tuple[float, float, float]] = {}
    for window in store.windows:
        base = limits.labels((scrub(window.app), scrub(window.environment), "", "", scrub(window.evaluator), ""))
        labels = (base[0], base[1], base[4], window.quality)
        count, faithful, hallucinated = merged.get(labels, (0.0, 0.0, 0.0))
        merged[labels] = (
            count + window.evaluations,
            faithful + window.faithfulness * window.evaluations,
            hallucinated + window.hallucination * window.evaluations,
        )
    yield from _gauge(metrics.WINDOW_EVALUATIONS, {labels: count for labels, (count, _, _) in merged.items()})
    yield from _gauge(metrics.FAITHFULNESS_RATIO, {labels: mean / n for labels, (n, mean, _) in merged.items()})
    yield from _gauge(metrics.HALLUCINATION_RATIO, {labels: rate / n for labels, (n, _, rate) in merged.items()})


_TRIAD: Final = {
    "groundedness": metrics.GROUNDEDNESS_RATIO,
    "context_relevance": metrics.CONTEXT_RELEVANCE_RATIO,
    "answer_relevance": metrics.ANSWER_RELEVANCE_RATIO,
}


def _judged(store: StoreReading, limits: LabelSets) -> Iterator[Family]:
    """The judged 5-minute means, and the answers that wait for the judge."""
    merged: dict[tuple[str, Labels], tuple[float, float]] = {}
    for window in store.judged:
        base = limits.labels((scrub(window.app), scrub(window.environment), "", "", scrub(window.evaluator), ""))
        key = (window.criterion, (base[0], base[1], base[4], window.quality, window.method))
        count, total = merged.get(key, (0.0, 0.0))
        merged[key] = (count + window.evaluations, total + window.mean * window.evaluations)
    for criterion, metric in _TRIAD.items():
        means = {labels: total / n for (name, labels), (n, total) in merged.items() if name == criterion}
        yield from _gauge(metric, means)
    counts = {(*labels[:-1], name, labels[-1]): n for (name, labels), (n, _) in merged.items()}
    yield from _gauge(metrics.JUDGED_WINDOW, counts)
    waiting = store.in_flight.get("judging", 0)
    if waiting or any(total.metric == totals.JUDGE_ANSWERS for total in store.totals):
        yield from _gauge(metrics.JUDGE_WAITING, {(): float(waiting)})
    yield from _gauge(metrics.JUDGE_OLDEST, {(): store.oldest_judging})


def _canaries(outcomes: Sequence[bool]) -> Iterator[Family]:
    """Accuracy of the judge on answers with a known verdict, from 50 on."""
    known, passed = len(outcomes), sum(outcomes)
    if known:
        yield from _gauge(metrics.CANARIES, {(): float(known)})
    if known >= MIN_CANARIES:
        found = rate(passed, known)
        yield from _gauge(metrics.CANARY_ACCURACY, {(): found.value})
        yield from _gauge(metrics.CANARY_LOWER, {(): found.low})
        yield from _gauge(metrics.CANARY_UPPER, {(): found.high})


def _queue_gauges(queues: QueueReading) -> Iterator[Family]:
    yield from _gauge(metrics.QUEUE_DEPTH, {(queue.name,): float(queue.depth) for queue in queues.queues})
    yield from _gauge(metrics.QUEUE_OLDEST, {(queue.name,): queue.oldest for queue in queues.queues})
    yield from _gauge(metrics.COLD_HORIZON, {(): queues.cold_horizon})
    yield from _canaries(queues.canaries)


def _exporter(reading: Reading) -> Iterator[Family]:
    answered = {("postgres",): reading.store is not None, ("redis",): reading.queues is not None}
    yield from _gauge(metrics.EXPORTER_UP, {(): float(all(answered.values()))})
    yield from _gauge(metrics.DEPENDENCY_UP, {labels: float(up) for labels, up in answered.items()})
    yield from _gauge(metrics.REFRESH_TIMESTAMP, {(): reading.at})
    yield from _gauge(metrics.REFRESH_SECONDS, {(): reading.seconds})
