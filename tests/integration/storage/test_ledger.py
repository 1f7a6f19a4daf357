"""The ledger decides who may work on an answer, and who may finish it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction
from aftercheck_worker.storage import database, dead_letters, ledger, totals
from aftercheck_worker.storage.totals import TotalKey

pytestmark = pytest.mark.integration

Connection = psycopg.Connection[TupleRow]
Answers = Callable[..., list[ledger.NewAnswer]]
Claimed = Callable[..., Sequence[ledger.Work]]


def _state(connection: Connection, number: int) -> tuple[object, ...]:
    row = connection.execute(
        "SELECT state, reason, attempts, solo FROM ledger WHERE evaluation_id = %s", (number,)
    ).fetchone()
    assert row is not None
    return tuple(row)


def _total(connection: Connection, metric: str, **labels: str) -> float:
    return sum(
        total.value
        for total in totals.read(connection)
        if total.name.metric == metric and all(getattr(total.name, name) == value for name, value in labels.items())
    )


@pytest.mark.req("P6", "F27")
def test_an_answer_is_inserted_once(connection: Connection, answers: Answers) -> None:
    new = answers(3)

    first = ledger.insert(connection, [*new, new[0]])
    second = ledger.insert(connection, new)

    assert {row.trace_id for row in first} == {answer.trace_id for answer in new}
    assert len({row.evaluation_id for row in first}) == 3
    assert second == []
    bodies = connection.execute(
        "SELECT count(*) FROM interaction WHERE evaluation_id = ANY(%s)", ([row.evaluation_id for row in first],)
    ).fetchone()
    assert bodies == (3,)


def test_a_claimed_answer_is_what_was_inserted(claimed: Claimed) -> None:
    (work,) = claimed(weight=4.0, pairs=12, origin="forced", app="bank")

    assert (work.weight, work.pairs, work.origin, work.app, work.attempts, work.solo) == (
        4,
        12,
        "forced",
        "bank",
        1,
        False,
    )
    assert msgspec.json.decode(work.body, type=Interaction).question == "What does the plan cost?"


@pytest.mark.req("F04")
def test_attempts_are_counted_before_the_work_and_anew_when_alone(connection: Connection, claimed: Claimed) -> None:
    (work,) = claimed()
    number = work.evaluation_id

    assert ledger.claim(connection, [number])[0].attempts == 2
    assert ledger.mark_solo(connection, [number]) == [number]
    assert _state(connection, number) == ("pending", None, 0, True)
    assert ledger.mark_solo(connection, [number]) == []
    assert [ledger.claim(connection, [number])[0].attempts for _ in range(3)] == [1, 2, 3]


@pytest.mark.req("F11", "F18")
def test_a_released_answer_has_lost_no_attempt_and_waits(connection: Connection, claimed: Claimed) -> None:
    (work,) = claimed()

    assert ledger.release(connection, [work.evaluation_id], delay_seconds=60) == [work.evaluation_id]
    assert ledger.claim(connection, [work.evaluation_id]) == []
    connection.execute("UPDATE ledger SET not_before = now() WHERE evaluation_id = %s", (work.evaluation_id,))
    assert [again.attempts for again in ledger.claim(connection, [work.evaluation_id])] == [1]


@pytest.mark.req("P7", "I5")
def test_a_terminal_state_is_final(connection: Connection, claimed: Claimed) -> None:
    (work,) = claimed()
    number = work.evaluation_id

    assert ledger.fail(connection, [number], "too_large") == [number]

    assert ledger.fail(connection, [number], "deadline") == []
    assert ledger.claim(connection, [number]) == []
    assert ledger.mark_solo(connection, [number]) == []
    assert ledger.release(connection, [number]) == []
    assert not ledger.dead_letter(connection, number, "crash_loop")
    assert _state(connection, number) == ("failed", "too_large", 1, False)


def test_failures_and_dead_letters_are_counted_by_reason(connection: Connection, claimed: Claimed) -> None:
    one, other = claimed(2, app="counted")

    ledger.fail(connection, [one.evaluation_id], "too_large")
    assert ledger.dead_letter(connection, other.evaluation_id, "crash_loop", "died 3 times")

    assert _total(connection, totals.FAILED, app="counted", key="too_large") == 1
    assert _total(connection, totals.DEAD_LETTERS, app="counted", key="crash_loop") == 1
    assert _total(connection, totals.STATES, app="counted") == 2
    (letter,) = dead_letters.of_trace(connection, "default", other.trace_id)
    assert (letter.reason, letter.detail, letter.evaluation_id) == ("crash_loop", "died 3 times", other.evaluation_id)


def test_a_dead_letter_can_be_retried_alone(connection: Connection, claimed: Claimed) -> None:
    (work,) = claimed()
    ledger.dead_letter(connection, work.evaluation_id, "crash_loop")
    (letter,) = dead_letters.of_trace(connection, "default", work.trace_id)

    assert dead_letters.retry_answer(connection, letter.id) == work.evaluation_id

    assert _state(connection, work.evaluation_id) == ("pending", None, 0, True)
    assert dead_letters.retry_answer(connection, letter.id) is None


@pytest.mark.req("F28")
def test_late_spans_replace_an_answer_until_it_is_started(connection: Connection, answers: Answers) -> None:
    waiting, started = answers(2)
    first, second = ledger.insert(connection, [waiting, started])
    ledger.claim(connection, [second.evaluation_id])
    newer = [msgspec.structs.replace(answer, body=b'{"newer":true}', pairs=9) for answer in (waiting, started)]

    assert ledger.replace_pending(connection, newer) == [first]

    works = {
        work.evaluation_id: work for work in ledger.claim(connection, [first.evaluation_id, second.evaluation_id])
    }
    assert msgspec.json.decode(works[first.evaluation_id].body) == {"newer": True}
    assert works[first.evaluation_id].pairs == 9
    assert "newer" not in works[second.evaluation_id].body.decode()


@pytest.mark.req("R53")
def test_not_assessable_is_final_at_once_and_no_score(connection: Connection, answers: Answers) -> None:
    new = answers(2, app="plain", state="not_assessable", reason="no_content", environment="prod", weight=20.0)

    inserted = ledger.insert(connection, new)

    assert {row.state for row in inserted} == {"not_assessable"}
    assert ledger.claim(connection, [row.evaluation_id for row in inserted]) == []
    assert _total(connection, totals.NOT_ASSESSABLE, app="plain", environment="prod", key="no_content") == 2
    assert _total(connection, totals.ANSWERS, app="plain", key="not_assessable") == 40
    assert _total(connection, totals.FAITHFULNESS_COUNT, app="plain") == 0


@pytest.mark.req("S35")
def test_an_erased_trace_does_not_come_back(connection: Connection, answers: Answers) -> None:
    gone, kept = answers(2)
    connection.execute(
        "INSERT INTO tombstone (tenant, trace_id, receipt) VALUES ('default', %s, '{}')", (gone.trace_id,)
    )

    assert [row.trace_id for row in ledger.insert(connection, [gone, kept])] == [kept.trace_id]


@pytest.mark.req("S21", "F25")
def test_nul_and_lone_surrogates_do_not_reach_postgres(connection: Connection, answers: Answers) -> None:
    (answer,) = answers(
        app="a\0b", state="not_assessable", reason="\ud800", body=b'{"answer":"x\\u0000y","k\\u0000":1}'
    )

    (row,) = ledger.insert(connection, [answer])

    found = connection.execute(
        "SELECT body FROM interaction WHERE evaluation_id = %s", (row.evaluation_id,)
    ).fetchone()
    assert found == ({"answer": "x\ufffdy", "k\ufffd": 1},)
    assert _state(connection, row.evaluation_id)[1] == "\ufffd"


def test_what_removed_text_leaves_is_an_empty_body(connection: Connection, answers: Answers) -> None:
    (row,) = ledger.insert(connection, answers())
    connection.execute("DELETE FROM interaction WHERE evaluation_id = %s", (row.evaluation_id,))

    assert [work.body for work in ledger.claim(connection, [row.evaluation_id])] == [b""]


@pytest.mark.req("F29")
def test_an_answer_that_waited_too_long_expires(connection: Connection, answers: Answers) -> None:
    old, fresh = ledger.insert(connection, answers(2))
    connection.execute(
        "UPDATE ledger SET created_at = now() - interval '25 hours' WHERE evaluation_id = %s", (old.evaluation_id,)
    )

    assert ledger.expire(connection, 24 * 3600) == [old.evaluation_id]
    assert _state(connection, old.evaluation_id)[0] == "expired"
    assert _state(connection, fresh.evaluation_id)[0] == "pending"


@pytest.mark.req("F27")
def test_a_tenant_does_not_see_another_ones_trace(connection: Connection, answers: Answers) -> None:
    (answer,) = answers()
    other = msgspec.structs.replace(answer, tenant="other")

    assert len(ledger.insert(connection, [answer, other])) == 2


def test_unknown_totals_are_refused(connection: Connection) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        totals.add(connection, "default", {TotalKey("nonsense"): 1.0})


@pytest.mark.req("P7")
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_totals_refuse_what_is_no_number(connection: Connection, value: float) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        totals.add(connection, "default", {TotalKey(totals.SAMPLED, "nan"): value})


def test_totals_add_up_also_when_two_names_become_one(connection: Connection) -> None:
    increments = {TotalKey(totals.SAMPLED, "x\0"): 2.0, TotalKey(totals.SAMPLED, "x\ud800"): 3.0}

    for _ in range(2):
        database.transaction(connection, lambda c: totals.add(c, "default", increments))

    assert _total(connection, totals.SAMPLED, app="x\ufffd") == 10


def test_a_transaction_inside_another_is_refused(connect: Callable[[], Connection]) -> None:
    connection = connect()
    connection.execute("SELECT 1")

    with pytest.raises(RuntimeError, match="open transaction"):
        database.transaction(connection, lambda c: c.execute("SELECT 1"))
