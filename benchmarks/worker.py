"""Evaluations per second of a fleet of two Celery workers without a model: `python -m benchmarks.worker`.

Real Postgres (fsync on), real Valkey, two worker processes as `aftercheck worker --no-intake` starts them, evaluator
lexical-v1: claim splitting, exact R13 and R12, and all rows written. Each answer has three claims and three passages
of about 55 words. The ledger is filled first; the clock runs from the first message to the last final state. On a
machine of two cores the workers share them with Postgres and Valkey.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

import msgspec
import psutil
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction, Passage
from aftercheck_worker import app, embedded, evaluators, pipeline
from aftercheck_worker import settings as worker_settings
from aftercheck_worker.checking import Checker
from aftercheck_worker.storage import database, ledger, migrate

WORKERS = 2
ANSWERS = 20_000
WARM = 640
ALONE = 3_200
WAIT_SECONDS = 180.0
_TEXT = (
    "the quarterly revenue of the retail segment rose by four percent while operating costs stayed flat because"
    " energy prices fell and two warehouses were closed in spring the board expects a similar result next year"
)
_VOCABULARY = _TEXT.split()


def run() -> dict[str, float]:
    """Measure.

    Returns:
        `worker.no_model_eval_per_s`: the fleet; `worker.no_model_cpu_us`: CPU of one answer in workers, Postgres and
        Valkey together (2e6 over it is what two idle cores could do); `worker.one_process_eval_per_s`: one checker
        without Celery; `worker.check_cpu_us` and `worker.pipeline_cpu_us`: its CPU, and the share of the stages.
    """
    with tempfile.TemporaryDirectory() as home, embedded.start(Path(home)) as services:
        if services.database_url is None or services.redis_url is None:
            raise RuntimeError("the embedded services did not start")
        environ = {
            **services.environ(),
            "AFTERCHECK_EVALUATOR": "lexical-v1",
            "AFTERCHECK_HOME": home,
            "AFTERCHECK_EXPIRE_SECONDS": "86400",
        }
        os.environ.update(environ)
        worker_settings.current.cache_clear()
        migrate.upgrade(services.database_url)
        with database.connect(services.database_url, name="bench") as connection:
            connection.autocommit = True
            found = _stages() | _alone(connection, services.database_url)
            with _workers() as workers:
                roots = [*workers, *services.pids().values()]
                _work(connection, WARM)
                ids = _fill(connection, ANSWERS)
                before = _cpu_seconds(roots)
                seconds = _send(connection, ids)
                cpu = _cpu_seconds(roots) - before
        return found | {
            "worker.no_model_eval_per_s": ANSWERS / seconds,
            "worker.no_model_cpu_us": cpu / ANSWERS * 1e6,
        }


def _stages() -> dict[str, float]:
    """CPU microseconds of one answer in the pure pipeline, decoding included."""
    evaluator = evaluators.resolve("lexical-v1", worker_settings.current())
    decoder = msgspec.json.Decoder(Interaction)
    bodies = [msgspec.json.encode(interaction(n)) for n in range(320)]
    begun = time.process_time()
    for start in range(0, len(bodies), app.MAX_IDS):
        pipeline.evaluate_batch([decoder.decode(body) for body in bodies[start : start + app.MAX_IDS]], evaluator)
    return {"worker.pipeline_cpu_us": (time.process_time() - begun) / len(bodies) * 1e6}


def _alone(connection: psycopg.Connection[TupleRow], url: str) -> dict[str, float]:
    """One checker in this process, without Celery."""
    found = worker_settings.current()
    evaluator = evaluators.resolve("lexical-v1", found)
    checker = Checker(found, evaluator, lambda: database.connect(url, name="bench-checker"))
    ids = _fill(connection, ALONE)
    wall, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(ids), app.MAX_IDS):
        checker.check(ids[start : start + app.MAX_IDS])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    checker.close()
    return {"worker.one_process_eval_per_s": ALONE / wall, "worker.check_cpu_us": cpu / ALONE * 1e6}


@contextlib.contextmanager
def _workers() -> Generator[list[int]]:
    command = [sys.executable, "-m", "aftercheck_worker.cli", "worker", "--no-intake"]
    running = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(WORKERS)
    ]
    try:
        yield [process.pid for process in running]
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(60)


def _work(connection: psycopg.Connection[TupleRow], count: int) -> float:
    """Send `count` answers and return the seconds until all are final."""
    return _send(connection, _fill(connection, count))


def _send(connection: psycopg.Connection[TupleRow], ids: list[int]) -> float:
    begun = time.perf_counter()
    app.send_check(ids)
    while _left(connection, ids[0]):
        if time.perf_counter() - begun > WAIT_SECONDS:
            raise RuntimeError(f"{_left(connection, ids[0])} of {len(ids)} answers are not final")
        time.sleep(0.25)
    return time.perf_counter() - begun


def _cpu_seconds(roots: list[int]) -> float:
    """CPU seconds so far of the processes `roots` and all below them."""
    total = 0.0
    for root in roots:
        family = psutil.Process(root)
        for process in (family, *family.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system
    return total


def _left(connection: psycopg.Connection[TupleRow], first: int) -> int:
    row = connection.execute(
        "SELECT count(*) FROM ledger WHERE state IN ('pending', 'checking') AND evaluation_id >= %s", (first,)
    ).fetchone()
    return int(row[0]) if row else 0


def _fill(connection: psycopg.Connection[TupleRow], count: int) -> list[int]:
    ids: list[int] = []
    for start in range(0, count, 500):
        made = [interaction(n) for n in range(start, min(count, start + 500))]
        answers = [
            ledger.NewAnswer(
                tenant="default",
                trace_id=f"{random.getrandbits(128):032x}",
                span_id=one.span_id,
                app=one.app,
                body=msgspec.json.encode(one),
            )
            for one in made
        ]
        inserted = database.transaction(connection, lambda c, rows=answers: ledger.insert(c, rows))  # type: ignore[misc]
        ids += [row.evaluation_id for row in inserted]
    return sorted(ids)


def interaction(number: int) -> Interaction:
    """Return an answer of three sentences beside three passages."""
    rng = random.Random(number)

    def words(count: int) -> str:
        return " ".join(rng.choice(_VOCABULARY) for _ in range(count)).capitalize()

    return Interaction(
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        app="bench",
        question=words(8) + "?",
        answer=". ".join(words(13) for _ in range(3)) + ".",
        passages=tuple(Passage(source_id=str(n), text=words(55) + ".") for n in range(1, 4)),
        context_source="recorded",
        context_confidence=1.0,
        model="bench-model",
    )


if __name__ == "__main__":
    print(msgspec.json.encode(run()).decode())
