"""Answers and evaluations per second of one connection, fsync on: `python -m benchmarks.storage`.

Answers of 2.4 kB go in 500 at a time; then they are claimed, and finalised with three claims, verdicts and spans of
evidence each, 32 at a time, as a worker does. No model runs.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction, Passage
from aftercheck_schemas.evaluation import Claim, Evaluation, Evidence, Verdict
from aftercheck_worker import embedded
from aftercheck_worker.storage import database, ledger, migrate, results

ANSWERS = 8_000
_TEXT = 'The plan costs 12 euro a month and "includes" support.\n' * 10
_CLAIMS = tuple(Claim(id=f"c{number}", text=_TEXT[:60], start=0, end=60) for number in range(3))
_EVIDENCE = Evidence(source_id="1", start=0, end=60, text=_TEXT[:60], score=0.9)
_VERDICTS = tuple(
    Verdict(claim_id=claim.id, status="supported", confidence=0.9, evidence=(_EVIDENCE,)) for claim in _CLAIMS
)


def run() -> dict[str, float]:
    """Measure; keys are `storage.*`. The two CPU times are per evaluation, whatever else the machine does."""
    with tempfile.TemporaryDirectory() as home:
        begin = time.perf_counter()
        with embedded.start(Path(home)) as services:
            started = time.perf_counter() - begin
            url = services.environ()["DATABASE_URL"]
            migrate.upgrade(url)
            with database.connect(url, name="benchmark") as connection:
                connection.autocommit = True
                return {"storage.start_s": started, **_measure(connection)}


def _measure(connection: psycopg.Connection[TupleRow]) -> dict[str, float]:
    answers = [_answer(number) for number in range(ANSWERS)]
    ids: list[int] = []
    begin = time.perf_counter()
    for start in range(0, ANSWERS, 500):
        step = partial(ledger.insert, answers=answers[start : start + 500])
        ids += [row.evaluation_id for row in database.transaction(connection, step)]
    inserted = time.perf_counter() - begin
    backend = connection.info.backend_pid
    begin, cpu, server = time.perf_counter(), time.process_time(), _cpu_seconds(backend)
    for start in range(0, ANSWERS, 32):
        works = database.transaction(connection, partial(ledger.claim, ids=ids[start : start + 32]))
        finished = [_finished(work) for work in works]
        database.transaction(connection, partial(results.finalise, finished=finished))
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return {
        "storage.insert_per_s": ANSWERS / inserted,
        "storage.evaluations_per_s": ANSWERS / wall,
        "storage.client_cpu_us": cpu / ANSWERS * 1e6,
        "storage.server_cpu_us": (_cpu_seconds(backend) - server) / ANSWERS * 1e6,
    }


def _cpu_seconds(pid: int) -> float:
    """User and system time of a process, from Linux' /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _answer(number: int) -> ledger.NewAnswer:
    trace_id, span_id = f"{number:032x}", f"{number:016x}"
    interaction = Interaction(
        trace_id=trace_id,
        span_id=span_id,
        app="bench",
        question="What does the plan cost?",
        answer=_TEXT,
        passages=(Passage(source_id="1", text=_TEXT * 3),),
    )
    return ledger.NewAnswer(
        tenant="default",
        trace_id=trace_id,
        span_id=span_id,
        app=f"bench{number % 3}",
        weight=20.0,
        answered_at=time.time_ns(),
        body=msgspec.json.encode(interaction),
    )


def _finished(work: ledger.Work) -> results.Finished:
    evaluation = Evaluation(
        trace_id=work.trace_id,
        span_id=work.span_id,
        outcome="grounded",
        claims=_CLAIMS,
        verdicts=_VERDICTS,
        faithfulness=1.0,
        faithfulness_upper=1.0,
        evaluator="bench",
        evaluator_version="0" * 64,
    )
    labels = results.Labels(environment="bench", model="model-a", prompt_version="p1")
    return results.Finished(work=work, evaluation=evaluation, labels=labels)


if __name__ == "__main__":
    json.dump({**run(), "cores": float(os.cpu_count() or 0)}, sys.stdout, indent=2)
    print()
