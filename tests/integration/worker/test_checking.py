"""The checker on a real Postgres: states, poison, caps, lost connections. No Celery."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Protocol

import msgspec
import psycopg
import pytest
from psycopg import sql
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction, Passage
from aftercheck_worker import checking, evaluators, testing
from aftercheck_worker import settings as worker_settings
from aftercheck_worker.checking import Checker
from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages import verification
from aftercheck_worker.storage import database, ledger

pytestmark = pytest.mark.integration

Connection = psycopg.Connection[TupleRow]


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    with database.connect(database_url, name="test") as opened:
        opened.autocommit = True
        yield opened


@pytest.fixture
def queue() -> testing.RecordingQueue:
    return testing.RecordingQueue()


class Make(Protocol):
    def __call__(self, evaluator: evaluators.Evaluator | None = None, **changes: object) -> Checker: ...


@pytest.fixture
def make(settings: Settings, queue: testing.RecordingQueue) -> Iterator[Make]:
    """Build checkers that are closed after the test."""
    assert settings.database_url is not None
    url = settings.database_url.get_secret_value()
    with contextlib.ExitStack() as opened:

        def build(evaluator: evaluators.Evaluator | None = None, **changes: object) -> Checker:
            checker = Checker(
                settings.model_copy(update=changes),
                evaluator or testing.evaluator(),
                lambda: database.connect(url, name="checker"),
                queue,
            )
            opened.callback(checker.close)
            return checker

        yield build


def add(connection: Connection, interactions: Sequence[Interaction]) -> list[int]:
    answers = [
        ledger.NewAnswer(
            tenant="default", trace_id=i.trace_id, span_id=i.span_id, app=i.app, body=msgspec.json.encode(i)
        )
        for i in interactions
    ]
    with connection.transaction():
        found = {row.trace_id: row.evaluation_id for row in ledger.insert(connection, answers)}
    return [found[i.trace_id] for i in interactions]


def states(connection: Connection, ids: Sequence[int]) -> list[tuple[str, str | None]]:
    rows = connection.execute(
        "SELECT evaluation_id, state, reason FROM ledger WHERE evaluation_id = ANY(%s)", (list(ids),)
    ).fetchall()
    known = {row[0]: (row[1], row[2]) for row in rows}
    return [known[number] for number in ids]


def count(connection: Connection, table: str, ids: Sequence[int]) -> int:
    row = connection.execute(
        sql.SQL("SELECT count(*) FROM {} WHERE evaluation_id = ANY(%s)").format(sql.Identifier(table)),
        (list(ids),),
    ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.req("R7", "P7")
def test_a_message_ends_in_one_terminal_state_each(
    settings: Settings, make: Make, connection: Connection, queue: testing.RecordingQueue
) -> None:
    ids = add(
        connection,
        [
            testing.interaction("The fee is five euros for all plans.", "The fee is five euros for all plans."),
            testing.interaction("I cannot find that in the documents.", "x", question="What is the fee?"),
            testing.interaction("", "x"),
        ],
    )
    lexical = evaluators.resolve("lexical-v1", settings)

    make(lexical).check(ids)

    assert states(connection, ids) == [("scored", None), ("abstained", None), ("not_assessable", "no_answer_text")]
    assert count(connection, "evaluation", ids) == 3
    assert queue.messages == []


@pytest.mark.req("I6")
def test_stored_evidence_is_verbatim(settings: Settings, make: Make, connection: Connection) -> None:
    passage = "Żółć: the fee is five euros 🦊 for all plans"
    (number,) = add(connection, [testing.interaction("The fee is five euros today.", passage)])

    make(evaluators.resolve("lexical-v1", settings)).check([number])
    rows = connection.execute(
        'SELECT text, start, "end" FROM evidence WHERE evaluation_id = %s', (number,)
    ).fetchall()

    assert rows
    assert all(passage[start:end] == text for text, start, end in rows)


@pytest.mark.req("F27", "I4")
def test_duplicates_write_nothing_again(make: Make, connection: Connection, queue: testing.RecordingQueue) -> None:
    ids = add(connection, [testing.interaction(f"Dogs bark at {n} o'clock.", "x") for n in range(3)])
    checker = make()

    for _ in range(5):
        checker.check(ids)

    assert count(connection, "evaluation", ids) == 3
    assert queue.messages == []


def test_what_a_dead_batch_leaves_is_sent_alone_and_not_worked_on(
    make: Make, connection: Connection, queue: testing.RecordingQueue
) -> None:
    ids = add(connection, [testing.interaction(f"Dogs bark at {n} o'clock.", "x") for n in range(3)])
    with connection.transaction():
        ledger.claim(connection, ids)  # a worker claimed them and died

    make().check(ids, True)

    assert queue.messages == [((number,), True) for number in ids]
    assert count(connection, "evaluation", ids) == 0

    for (alone,), high in list(queue.messages):
        make().check([alone], high)

    assert states(connection, ids) == [("scored", None)] * 3


@pytest.mark.req("F04")
def test_crash_loop_after_three_attempts_alone(make: Make, connection: Connection) -> None:
    (number,) = add(connection, [testing.interaction("Dogs bark at night.", "x")])
    with connection.transaction():
        ledger.mark_solo(connection, [number])
    for _ in range(3):
        with connection.transaction():
            ledger.claim(connection, [number])

    make().check([number])

    assert states(connection, [number]) == [("dead_letter", "crash_loop")]
    assert count(connection, "dead_letter", [number]) == 1
    assert count(connection, "evaluation", [number]) == 0


@pytest.mark.req("F04")
def test_the_third_attempt_alone_still_counts(make: Make, connection: Connection) -> None:
    (number,) = add(connection, [testing.interaction("Dogs bark at night.", "x")])
    with connection.transaction():
        ledger.mark_solo(connection, [number])
    for _ in range(2):
        with connection.transaction():
            ledger.claim(connection, [number])

    make().check([number])

    assert states(connection, [number]) == [("scored", None)]


def test_answers_that_are_alone_but_came_in_company_lose_no_attempt(
    make: Make, connection: Connection, queue: testing.RecordingQueue
) -> None:
    ids = add(connection, [testing.interaction(f"Dogs bark at {n} o'clock.", "x") for n in range(2)])
    with connection.transaction():
        ledger.mark_solo(connection, ids[:1])

    for _ in range(6):
        make().check(ids)

    assert states(connection, ids) == [("pending", None), ("scored", None)]
    assert queue.messages == [((ids[0],), False)] * 6


def test_an_answer_that_breaks_the_verifier_costs_only_itself(
    make: Make, connection: Connection, queue: testing.RecordingQueue
) -> None:
    broken = testing.ScriptedVerifier({"Cats sleep.": ValueError("boom")})
    texts = ("Dogs bark at night.", "Cats sleep.", "Birds sing here.")
    ids = add(connection, [testing.interaction(text, "x") for text in texts])
    checker = make(testing.evaluator(broken))

    checker.check(ids)
    assert [message for message, _ in queue.messages] == [(number,) for number in ids]
    for (number,), _ in list(queue.messages):
        checker.check([number])

    assert states(connection, ids) == [("scored", None), ("failed", "verifier_failed"), ("scored", None)]


def test_no_memory_reaches_the_caller(make: Make, connection: Connection) -> None:
    broken = testing.ScriptedVerifier({"Cats sleep.": MemoryError()})
    ids = add(connection, [testing.interaction("Cats sleep.", "x")])

    with pytest.raises(MemoryError):
        make(testing.evaluator(broken)).check(ids)

    assert states(connection, ids) == [("checking", None)]


def test_too_large_malformed_and_missing_bodies_are_named(make: Make, connection: Connection) -> None:
    large = testing.interaction("word " * 4_000, *(f"passage {n}" for n in range(10)))
    ids = add(connection, [large, testing.interaction("a", "x"), testing.interaction("b", "x")])
    connection.execute("UPDATE interaction SET body = '{\"answer\": 1}' WHERE evaluation_id = %s", (ids[1],))
    connection.execute("DELETE FROM interaction WHERE evaluation_id = %s", (ids[2],))

    make(answer_pairs=2_000).check(ids)

    assert states(connection, ids) == [
        ("failed", "too_large"),
        ("dead_letter", "invalid_schema"),
        ("failed", "payload_missing"),
    ]


def test_a_batch_is_cut_by_pairs(make: Make, connection: Connection) -> None:
    verifier = testing.ScriptedVerifier()
    ids = add(connection, [testing.interaction(f"Dogs bark at {n} o'clock.", *"abcd") for n in range(10)])

    make(testing.evaluator(verifier), batch_pairs=12).check(ids)

    assert verifier.batches == [3, 3, 3, 1]
    assert states(connection, ids) == [("scored", None)] * 10


@pytest.mark.req("F25")
def test_nul_surrogates_and_huge_numbers_in_an_answer_are_stored(
    settings: Settings, make: Make, connection: Connection
) -> None:
    odd = Passage(source_id="a\x00b", text="fee \x00 five")
    ids = add(
        connection, [testing.interaction("The fee is\x00 five euros.", odd), testing.interaction("Dogs bark.", "x")]
    )

    make(evaluators.resolve("lexical-v1", settings)).check(ids)

    assert [state for state, _ in states(connection, ids)] == ["scored", "scored"]


@pytest.mark.req("F13")
def test_a_terminated_backend_is_replaced_at_once(make: Make, connection: Connection) -> None:
    ids = add(connection, [testing.interaction(f"Dogs bark at {n} o'clock.", "x") for n in range(2)])
    checker = make()
    checker.check(ids[:1])
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'aftercheck-checker'"
    )

    checker.check(ids[1:])

    assert states(connection, ids) == [("scored", None)] * 2


@pytest.mark.req("F11", "F16")
def test_an_absent_postgres_is_waited_for_and_then_reported(
    settings: Settings, queue: testing.RecordingQueue
) -> None:
    tries: list[int] = []

    def connect() -> Connection:
        tries.append(1)
        raise DependencyUnavailable("Postgres does not answer")

    checker = Checker(settings.model_copy(update={"patience_seconds": 0.6}), testing.evaluator(), connect, queue)

    with pytest.raises(DependencyUnavailable, match="Postgres does not answer"):
        checker.check([1])

    assert len(tries) >= 2


@pytest.mark.req("F11")
def test_results_survive_a_postgres_that_goes_away_during_the_work(make: Make, connection: Connection) -> None:
    class Cutting(testing.ScriptedVerifier):
        def verify(self, items: Sequence[verification.Item]) -> list[verification.Findings]:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'aftercheck-checker'"
            )
            return super().verify(items)

    ids = add(connection, [testing.interaction("Dogs bark at night.", "x")])

    make(testing.evaluator(Cutting())).check(ids)

    row = connection.execute("SELECT state, attempts FROM ledger WHERE evaluation_id = %s", (ids[0],)).fetchone()
    assert row == ("scored", 1)


def test_packed_never_splits_an_answer_and_never_loses_one() -> None:
    work = ledger.Work(
        evaluation_id=1, day=date(2026, 1, 1), attempts=1, solo=False, origin="production", weight=1.0, tenant="t",
        app="a", trace_id="t", span_id="s", pairs=1, answered_at=0, body=b"",
    )  # fmt: skip
    answers = [
        checking.Answer(work=work, interaction=testing.interaction("x"), pairs=pairs) for pairs in (5, 9, 1, 1, 20, 3)
    ]

    cut = [[answer.pairs for answer in batch] for batch in checking.packed(answers, 10)]

    assert cut == [[5], [9, 1], [1], [20], [3]]


def test_settings_of_this_module_are_the_current_ones(settings: Settings) -> None:
    assert worker_settings.current() == settings
