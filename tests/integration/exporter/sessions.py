"""Writes sessions of evaluated answers through the real ledger; from turn to turn their quality falls."""

from __future__ import annotations

import time

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction, Passage
from aftercheck_schemas.evaluation import CitationFinding, Claim, Evaluation, Verdict
from aftercheck_worker.storage import database, ledger, results

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
                question=f"Question {number % 40}?",
                answer="Yes.",
                passages=(Passage(source_id="a", text="Lima is the capital of Peru."),),
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
