"""Fatigue from rows written by the real ledger to the gauges that the alert reads (R30)."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aftercheck_worker import exporter
from aftercheck_worker.exporter.patterns import Patterns
from aftercheck_worker.exporter.reading import Fatigue
from aftercheck_worker.exporter.refresher import Refresher
from aftercheck_worker.storage import database, evaluator
from tests.integration.exporter.sessions import SESSIONS, write

pytestmark = pytest.mark.integration


@pytest.mark.req("R30")
def test_slopes_and_curves_reach_the_scrape(database_url: str, redis_url: str) -> None:
    with database.connect(database_url, name="test") as connection:
        connection.autocommit = True
        evaluator.remember(connection, name="engine", version="1" * 64, spec={"quality": "standard"})
        write(connection, "counted", recorded=True)
        write(connection, "uncounted", recorded=False)
        write(connection, "small", recorded=True, sessions=20)
    source = exporter.Source(database_url=database_url, redis_url=redis_url, broker_url=redis_url, tenant="default")
    refresher = Refresher(source, seconds=5, stall_seconds=60, label_values=100)
    assert refresher.patterns.read()
    refresher.refresh()
    refresher.close()
    samples = {
        (sample.name, *(sample.labels.get(name, "") for name in ("app", "measure", "against", "step"))): sample.value
        for family in text_string_to_metric_families(refresher.page().plain.decode())
        for sample in family.samples
        if "fatigue" in sample.name
    }

    for app in ("counted", "uncounted"):
        # 1, 1, .5, .5 and 2/3, 2/3, 2/3, 1/3 and 1, 1, 1, 0 over turns 1 to 4.
        slopes = {"faithfulness": -0.2, "citation_precision": -0.1, "self_consistency": -0.3}
        for measure, slope in slopes.items():
            assert samples["aftercheck_fatigue_slope", app, measure, "turn", ""] == pytest.approx(slope)
            assert samples["aftercheck_fatigue_slope_upper", app, measure, "turn", ""] < -0.01
            assert samples["aftercheck_fatigue_sessions", app, measure, "turn", ""] == SESSIONS
        assert samples["aftercheck_fatigue_slope", app, "faithfulness", "context_tokens", ""] == pytest.approx(-0.4)
        curve = [samples["aftercheck_fatigue_mean", app, "faithfulness", "turn", str(turn)] for turn in range(1, 5)]
        assert curve == pytest.approx([1, 1, 0.5, 0.5])
    assert samples["aftercheck_fatigue_sessions", "small", "faithfulness", "turn", ""] == 20
    assert ("aftercheck_fatigue_slope", "small", "faithfulness", "turn", "") not in samples


def test_a_postgres_that_does_not_answer_leaves_no_old_slope(database_url: str) -> None:
    patterns = Patterns(database_url, "default")
    assert patterns.read()
    assert patterns.latest().slopes
    patterns._url = "postgresql://nobody@127.0.0.1:1/none"

    assert not patterns.read()
    assert patterns.latest() == Fatigue()
