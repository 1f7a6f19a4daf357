"""Answers and evaluations to store, and a connection to this module's database."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec
import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction, Passage
from aftercheck_schemas.evaluation import Claim, Evaluation, Evidence, Verdict
from aftercheck_worker.storage import database, ledger, results

ANSWER = "The plan costs 12 euro. It includes support."
PASSAGE = "Plans start at 12 euro a month."
_numbers = itertools.count(1)

Answers = Callable[..., list[ledger.NewAnswer]]
Connect = Callable[[], psycopg.Connection[TupleRow]]


@pytest.fixture
def connect(database_url: str) -> Iterator[Connect]:
    """Opens connections that are closed after the test."""
    opened: list[psycopg.Connection[TupleRow]] = []

    def one() -> psycopg.Connection[TupleRow]:
        opened.append(database.connect(database_url, name="test"))
        return opened[-1]

    yield one
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(connect: Connect) -> psycopg.Connection[TupleRow]:
    found = connect()
    found.autocommit = True
    return found


@pytest.fixture
def answers() -> Answers:
    """Makes fresh answers; keywords override the fields of `NewAnswer`."""

    def make(count: int = 1, **fields: object) -> list[ledger.NewAnswer]:
        return [_answer(next(_numbers), fields) for _ in range(count)]

    return make


def _answer(number: int, fields: dict[str, object]) -> ledger.NewAnswer:
    trace_id, span_id = f"{number:032x}", f"{number:016x}"
    interaction = Interaction(
        trace_id=trace_id,
        span_id=span_id,
        app="shop",
        environment="test",
        model="model-a",
        question="What does the plan cost?",
        answer=ANSWER,
        passages=(Passage(source_id="1", text=PASSAGE),),
    )
    plain = ledger.NewAnswer(
        tenant="default",
        trace_id=trace_id,
        span_id=span_id,
        app="shop",
        weight=20.0,
        answered_at=time.time_ns(),
        body=msgspec.json.encode(interaction),
    )
    return msgspec.structs.replace(plain, **fields)


def evaluated(work: ledger.Work, **fields: object) -> results.Finished:
    """An evaluation of the answer above: one claim supported, one not found; keywords override fields."""
    claims = (
        Claim(id="c1", text=ANSWER[:23], start=0, end=23, type="number", severity="high", citations=("1",)),
        Claim(id="c2", text=ANSWER[24:], start=24, end=len(ANSWER)),
    )
    verdicts = (
        Verdict(
            claim_id="c1",
            status="supported",
            confidence=0.9,
            evidence=(Evidence(source_id="1", start=0, end=len(PASSAGE), text=PASSAGE, score=0.9),),
        ),
        Verdict(claim_id="c2", status="not_found", confidence=0.7),
    )
    plain = Evaluation(
        trace_id=work.trace_id,
        span_id=work.span_id,
        outcome="ungrounded",
        claims=claims,
        verdicts=verdicts,
        faithfulness=0.5,
        faithfulness_upper=0.5,
        hallucinated=True,
        flagged=True,
        evaluator="lexical-v1",
        evaluator_version="0" * 64,
        quality="smoke",
    )
    return results.Finished(
        work=work,
        evaluation=msgspec.structs.replace(plain, **fields),
        labels=results.Labels(environment="test", model="model-a"),
    )


@pytest.fixture
def evaluate() -> Callable[..., results.Finished]:
    """Makes an evaluation of a claimed answer; keywords override the fields of `Evaluation`."""
    return evaluated


@pytest.fixture
def claimed(connection: psycopg.Connection[TupleRow], answers: Answers) -> Callable[..., Sequence[ledger.Work]]:
    """Inserts and claims fresh answers."""

    def make(count: int = 1, **fields: object) -> Sequence[ledger.Work]:
        new = database.transaction(connection, lambda c: ledger.insert(c, answers(count, **fields)))
        return database.transaction(connection, lambda c: ledger.claim(c, [row.evaluation_id for row in new]))

    return make
