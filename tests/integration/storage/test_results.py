"""Results are written once, whole, and with totals that equal the rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import date

import msgspec
import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_schemas.evaluation import CitationFinding, EvaluatorFailure
from aftercheck_worker.storage import database, explain, ledger, results, totals

pytestmark = pytest.mark.integration

Connection = psycopg.Connection[TupleRow]
Claimed = Callable[..., Sequence[ledger.Work]]
Evaluate = Callable[..., results.Finished]


def _write(connection: Connection, finished: Sequence[results.Finished], late_seconds: float = 900) -> int:
    return database.transaction(connection, lambda c: results.finalise(c, finished, late_seconds=late_seconds))


def _of(connection: Connection, app: str) -> dict[tuple[str, str], float]:
    return {
        (total.name.metric, total.name.key): total.value for total in totals.read(connection) if total.name.app == app
    }


@pytest.mark.req("R53", "P6")
def test_everything_of_an_evaluation_is_stored(connection: Connection, claimed: Claimed, evaluate: Evaluate) -> None:
    (work,) = claimed()
    finished = evaluate(
        work,
        citations=(CitationFinding(claim_id="c1", label="1", source_id="1", exists=True, entails=True),),
        failures=(EvaluatorFailure(evaluator="judge", reason="judge_timeout"),),
        supported_probability=0.25,
        critical=1,
        action="warn",
        risk=0.4,
    )

    assert _write(connection, [finished]) == 1

    (answer,) = explain.explain(connection, "default", work.trace_id).answers
    (stored,) = answer.evaluations
    assert (answer.state, answer.why) == ("scored", "")
    assert (stored.outcome, stored.faithfulness, stored.supported_probability) == ("ungrounded", 0.5, 0.25)
    assert (stored.quality, stored.action, stored.risk, stored.critical) == ("smoke", "warn", 0.4, 1)
    assert (stored.environment, stored.model) == ("test", "model-a")
    details = msgspec.convert(stored.details, dict[str, list[dict[str, object]]])
    assert details["failures"][0]["reason"] == "judge_timeout"
    assert details["citations"][0]["entails"] is True
    assert [(claim.claim_id, claim.status, claim.confidence) for claim in stored.claims] == [
        ("c1", "supported", 0.9),
        ("c2", "not_found", 0.7),
    ]
    passage = msgspec.convert(answer.interaction, dict[str, object])["passages"]
    (evidence,) = stored.claims[0].evidence
    assert evidence.text == msgspec.convert(passage, list[dict[str, str]])[0]["text"][evidence.start : evidence.end]


@pytest.mark.req("R53", "I5")
def test_a_second_result_changes_nothing(connection: Connection, claimed: Claimed, evaluate: Evaluate) -> None:
    (work,) = claimed(app="twice")
    _write(connection, [evaluate(work)])
    before = _of(connection, "twice")

    other = evaluate(work, outcome="grounded", faithfulness=1.0, hallucinated=False, evaluator_version="1" * 64)
    assert _write(connection, [other]) == 0

    after = _of(connection, "twice")
    assert after.pop((totals.DUPLICATES, "")) == 1
    assert after == before
    stored = connection.execute("SELECT outcome FROM evaluation WHERE trace_id = %s", (work.trace_id,)).fetchall()
    assert stored == [("ungrounded",)]


@pytest.mark.req("R53")
def test_totals_are_weighted_and_raw(connection: Connection, claimed: Claimed, evaluate: Evaluate) -> None:
    rare = claimed(2, app="sums", weight=20.0)
    (forced,) = claimed(app="sums", weight=1.0, origin="forced")

    _write(
        connection,
        [
            evaluate(rare[0], faithfulness=0.25, critical=2),
            evaluate(rare[1], outcome="no_claims", faithfulness=None, hallucinated=False, claims=(), verdicts=()),
            evaluate(forced, outcome="grounded", faithfulness=1.0, hallucinated=False, flagged=False),
        ],
    )

    found = {
        (total.name.metric, total.name.key): total.value
        for total in totals.read(connection)
        if total.name.app == "sums" and total.name.origin == "production"
    }
    assert found == {
        (totals.FAITHFULNESS_SUM, ""): 5.0,
        (totals.FAITHFULNESS_COUNT, ""): 20.0,
        (totals.FAITHFULNESS_SUMSQ, ""): 1.25,
        (totals.FAITHFULNESS_RAW_SUM, ""): 0.25,
        (totals.FAITHFULNESS_RAW_COUNT, ""): 1.0,
        (totals.FAITHFULNESS_RAW_SUMSQ, ""): 0.0625,
        (totals.ANSWERS, "ungrounded"): 20.0,
        (totals.ANSWERS, "no_claims"): 20.0,
        (totals.ANSWERS_RAW, "ungrounded"): 1.0,
        (totals.ANSWERS_RAW, "no_claims"): 1.0,
        (totals.HALLUCINATED, ""): 20.0,
        (totals.HALLUCINATED_RAW, ""): 1.0,
        (totals.CRITICAL, ""): 20.0,
        (totals.CRITICAL_RAW, ""): 1.0,
        (totals.CRITICAL_CLAIMS, ""): 2.0,
        (totals.FLAGGED, ""): 20.0,
        (totals.FLAGGED_RAW, ""): 1.0,
        (totals.CLAIMS, "supported"): 1.0,
        (totals.CLAIMS, "not_found"): 1.0,
        (totals.CLAIMS_TYPE, "number"): 1.0,
        (totals.CLAIMS_TYPE, "fact"): 1.0,
        (totals.ACTIONS, "allow"): 2.0,
        (totals.STATES, "scored"): 2.0,
        (totals.FINALISED, "verifier"): 2.0,
    }


@pytest.mark.req("P7")
@pytest.mark.parametrize("outcome", ["abstained", "not_assessable", "no_claims"])
def test_what_was_not_measured_enters_no_mean(
    connection: Connection, claimed: Claimed, evaluate: Evaluate, outcome: str
) -> None:
    (work,) = claimed(app=outcome)

    _write(connection, [evaluate(work, outcome=outcome, faithfulness=0.5)])

    metrics = {metric for metric, _ in _of(connection, outcome)}
    assert not metrics & {totals.FAITHFULNESS_COUNT, totals.FAITHFULNESS_RAW_COUNT, totals.HALLUCINATED}


@pytest.mark.req("R53")
@pytest.mark.parametrize(("age", "late"), [(901, True), (60, False), (None, False)])
def test_late_answers_stay_out_of_the_alert_series(
    connection: Connection, claimed: Claimed, evaluate: Evaluate, age: int | None, late: bool
) -> None:
    app = f"age-{age}"
    answered_at = 0 if age is None else time.time_ns() - age * 1_000_000_000
    (work,) = claimed(app=app, answered_at=answered_at)

    _write(connection, [evaluate(work)], late_seconds=900)

    found = _of(connection, app)
    assert ((totals.LATE, "ungrounded") in found) is late
    assert ((totals.FAITHFULNESS_COUNT, "") in found) is not late
    assert (found.get((totals.LATE_FAITHFULNESS_COUNT, "")) == 20.0) is late
    flag = connection.execute("SELECT late FROM evaluation WHERE trace_id = %s", (work.trace_id,)).fetchone()
    assert flag == (late,)


@pytest.mark.req("P7")
def test_a_nan_stops_its_batch_and_leaves_nothing(
    connection: Connection, claimed: Claimed, evaluate: Evaluate
) -> None:
    good, bad = claimed(2, app="nan")

    with pytest.raises(psycopg.errors.CheckViolation):
        _write(connection, [evaluate(good), evaluate(bad, faithfulness=float("nan"))])

    assert _of(connection, "nan") == {}
    rows = connection.execute("SELECT count(*) FROM evaluation WHERE app = 'nan'").fetchone()
    assert rows == (0,)
    assert _write(connection, [evaluate(good)]) == 1


@pytest.mark.req("S21", "F25")
def test_model_text_may_hold_anything(connection: Connection, claimed: Claimed, evaluate: Evaluate) -> None:
    (work,) = claimed()
    plain = evaluate(work).evaluation
    claim = msgspec.structs.replace(plain.claims[0], text="a\0b\ud800c", citations=("\0",), premise="\udfff")

    _write(connection, [evaluate(work, claims=(claim, plain.claims[1]), labels=("\ud800",), reason="\0")])

    (answer,) = explain.explain(connection, "default", work.trace_id).answers
    assert answer.evaluations[0].claims[0].text == "a\ufffdb\ufffdc"
    assert answer.evaluations[0].reason == "\ufffd"


@pytest.mark.req("F28")
def test_rows_go_to_the_ledgers_day(connection: Connection, claimed: Claimed, evaluate: Evaluate) -> None:
    (work,) = claimed()
    mistaken = msgspec.structs.replace(work, day=date(2020, 1, 1))

    _write(connection, [evaluate(mistaken)])

    stored = connection.execute("SELECT day FROM evaluation WHERE trace_id = %s", (work.trace_id,)).fetchone()
    assert stored == (work.day,)


def test_an_empty_batch_is_nothing(connection: Connection) -> None:
    assert _write(connection, []) == 0
