"""Keeps checks after they were answered: one thread, a bounded line, best effort (R53: origin `check`, no rates).

A check is the caller's question to the engine, not traffic; losing its record costs a page, never an answer.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from typing import Final

import msgspec
import psycopg
from prometheus_client import Counter
from psycopg.rows import TupleRow

from aftercheck_schemas import Evaluation, Interaction
from aftercheck_worker import pipeline
from aftercheck_worker.api import metering
from aftercheck_worker.committing import Committer
from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.storage import database, judging, ledger, results, scrub
from aftercheck_worker.storage import evaluator as evaluator_table
from aftercheck_worker.storage.judged import Judged

logger = logging.getLogger(__name__)

MOST: Final = 1000
BATCH: Final = 32
PATIENCE_SECONDS: Final = 5.0
CHECKS: Final = Counter(
    "aftercheck_api_checks_total",
    "Checks of the loop by what became of their record: stored, or dropped.",
    ["record"],
    registry=metering.registry,
)


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One check to keep. `spec` describes an evaluator version with a judge, None for the verifier's own."""

    tenant: str
    interaction: Interaction
    evaluation: Evaluation
    judged: Judged | None = None
    spec: dict[str, object] | None = None


class Recorder:
    """Writes checks in the background.

    Args:
        url: of Postgres.
        evaluator: described beside its results.
    """

    def __init__(self, url: str, evaluator: Evaluator) -> None:
        self._committer = Committer(lambda: database.connect(url, name="checks"), PATIENCE_SECONDS)
        self._evaluator = evaluator
        self._known: set[str] = set()
        self._line: queue.Queue[Record | None] = queue.Queue(MOST)
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Start the thread, unless it runs."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Write what waits, for a few seconds at most."""
        if self._thread is None or not self._thread.is_alive():
            return
        try:
            self._line.put(None, timeout=1)
        except queue.Full:
            return
        self._thread.join(PATIENCE_SECONDS)

    def put(self, record: Record) -> None:
        """Take a check; drop it, counted, when the line is full. Never waits."""
        try:
            self._line.put_nowait(record)
        except queue.Full:
            CHECKS.labels("dropped").inc()

    def join(self) -> None:
        """Wait until everything taken so far was written or dropped."""
        self._line.join()

    def _work(self) -> None:
        while True:
            batch = self._batch()
            records = [one for one in batch if one is not None]
            try:
                self._write(records)
            finally:
                for _ in batch:
                    self._line.task_done()
            if len(records) < len(batch):
                self._committer.close()
                return

    def _batch(self) -> list[Record | None]:
        found = [self._line.get()]
        while len(found) < BATCH and found[-1] is not None:
            try:
                found.append(self._line.get_nowait())
            except queue.Empty:
                break
        return found

    def _write(self, records: Sequence[Record]) -> None:
        if not records:
            return
        try:
            self._committer.commit(lambda connection: self._store(connection, records))
        except (psycopg.Error, DependencyUnavailable) as error:
            # One line without text: the error of a row may quote it.
            logger.warning(
                "%d checks were not recorded: %s", len(records), type(error).__name__, extra={"action": "checks_lost"}
            )
            CHECKS.labels("dropped").inc(len(records))
        else:
            self._known |= {one.evaluation.evaluator_version for one in records}
            CHECKS.labels("stored").inc(len(records))

    def _store(self, connection: psycopg.Connection[TupleRow], records: Sequence[Record]) -> None:
        for version, spec in {one.evaluation.evaluator_version: one.spec for one in records}.items():
            if version not in self._known:
                known = self._evaluator.spec if spec is None else spec
                evaluator_table.remember(connection, name=self._evaluator.name, version=version, spec=known)
        made = ledger.insert(connection, [_answer(one) for one in records])
        works = ledger.claim(connection, [row.evaluation_id for row in made])
        given = {one.interaction.trace_id: one for one in records}
        finished: list[results.Finished] = []
        for work in works:
            one = given[work.trace_id]
            if one.judged is not None and one.judged.judgement is not None:
                judging.record(connection, work, one.evaluation.evaluator_version, one.judged.judgement)
            labels = results.Labels.of(one.interaction)
            finished.append(results.Finished(work=work, evaluation=one.evaluation, labels=labels, judged=one.judged))
        results.finalise(connection, finished)


def _answer(record: Record) -> ledger.NewAnswer:
    found = record.interaction
    return ledger.NewAnswer(
        tenant=record.tenant,
        trace_id=found.trace_id,
        span_id=found.span_id,
        app=found.app,
        origin="check",
        pairs=pipeline.estimated_pairs(found),
        answered_at=found.answered_at,
        body=scrub.encode(found),
    )
