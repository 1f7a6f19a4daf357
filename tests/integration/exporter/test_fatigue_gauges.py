"""Fatigue from rows written by the real ledger to the gauges that the alert reads (R30)."""

from __future__ import annotations

import time

import msgspec
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction
from aftercheck_schemas.evaluation import CitationFinding, Claim, Evaluation, Verdict
from aftercheck_worker import exporter
from aftercheck_worker.exporter.refresher import Refresher
from aftercheck_worker.storage import database, evaluator, ledger, results

pytestmark = pytest.mark.integration

SESSIONS = 60
TURNS = 5


def write(connection: psycopg.Connection[TupleRow], app: str, *, recorded: bool, sessions: int = SESSIONS) -> None:
    """Sessions whose third and fourth turn are worse; `recorded` says whether the app counted its turns."""
    new: list[ledger.NewAnswer] = []
    began = time.time_ns() - 600 * 10**9
    for session in range(sessions):
        for turn in range(1, TURNS + 1):
            number = session * TURNS + turn
            trace_id = f"{abs(hash(app)) % 2**64:016x}{number:016x}"
            body = Interaction(
                trace_id=trace_id,
                span_id=f"{number:016x}",
                app=app,
                answer="Yes.",
                session_id=f"s{session}",
                turn=turn if recorded else 0,
                context_tokens=500 * turn,
            )
            new.append(
                ledger.NewAnswer(
                    tenant="default",
                    trace_id=trace_id,
                    span_id=body.span_id,
                    app=app,
                    answered_at=began + number * 10**9,
                    body=msgspec.json.encode(body),
                )
            )
    rows = database.transaction(connection, lambda c: ledger.insert(c, new))
    works = database.transaction(connection, lambda c: ledger.claim(c, [row.evaluation_id for row in rows]))
    finished = [_finished(work) for work in works]
    database.transaction(connection, lambda c: results.finalise(c, finished))


def _finished(work: ledger.Work) -> results.Finished:
    body = msgspec.json.decode(work.body, type=Interaction)
    turn = (int(body.span_id, 16) - 1) % TURNS + 1
    faithfulness = 1.0 if turn < 3 else 0.5
    found = Evaluation(
        trace_id=body.trace_id,
        span_id=body.span_id,
        outcome="grounded" if faithfulness == 1 else "ungrounded",
        claims=(Claim(id="c1", text="Yes.", start=0, end=4),),
        verdicts=(Verdict(claim_id="c1", status="supported", confidence=0.9),),
        citations=(
            CitationFinding(claim_id="c1", label="1", source_id="a", exists=True, entails=True),
            CitationFinding(claim_id="c1", label="2", source_id="b", exists=True, entails=turn < 4),
            CitationFinding(claim_id="c1", label="3", source_id="c", exists=True),
            CitationFinding(claim_id="c1", label="9"),
        ),
        faithfulness=faithfulness,
        labels=("self_contradiction",) if turn == 4 else (),
        evaluator="engine",
        evaluator_version="1" * 64,
    )
    return results.Finished(work=work, evaluation=found, labels=results.Labels.of(body))


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
