"""One Celery message: claim its answers, evaluate them, write the results. Knows Postgres, knows no Celery.

Poison (architecture.md): attempts are counted and committed before the work. An answer that a dead batch leaves
behind is not tried with others again: it is sent alone, and is a dead letter (`crash_loop`) after three attempts.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction
from aftercheck_worker import app, pipeline
from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database, evaluator, ledger, results

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 0.2
MAX_PAUSE_SECONDS: Final = 5.0

_T = TypeVar("_T")
Connect = Callable[[], psycopg.Connection[TupleRow]]
Send = Callable[[Sequence[int], bool], None]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed answer that can be evaluated. `pairs` is its estimated cost."""

    work: ledger.Work
    interaction: Interaction
    pairs: int


class Sorted(msgspec.Struct, kw_only=True):
    """What to do with each claimed answer. Ids, except for `ready` and `malformed` (id, why)."""

    ready: list[Answer] = []
    suspects: list[int] = []
    misplaced: list[int] = []
    crashed: list[int] = []
    missing: list[int] = []
    oversize: list[int] = []
    malformed: list[tuple[int, str]] = []


class Checker:
    """Checks answers with one evaluator over one connection; lives as long as its process."""

    def __init__(
        self, settings: Settings, evaluator: Evaluator, connect: Connect, send: Send = app.send_check
    ) -> None:
        self._settings = settings
        self._evaluator = evaluator
        self._connect = connect
        self._send = send
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._remembered = False
        self._decoder = msgspec.json.Decoder(Interaction)

    def check(self, ids: Sequence[int], high: bool = False) -> None:
        """Bring the answers among `ids` that are not finished to their terminal state, or send them again alone.

        Args:
            ids: evaluation ids of one message.
            high: the queue to send suspects to.

        Raises:
            DependencyUnavailable: Postgres did not answer for `patience_seconds`; the message must be requeued.
        """
        works = self._commit(lambda connection: self._claim(connection, ids))
        self._remembered = True
        plan = self._sort(works, alone=len(ids) == 1)
        self._refuse(plan)
        self._isolate(plan, high)
        for batch in packed(plan.ready, self._settings.batch_pairs):
            self._evaluate(batch, high)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _claim(self, connection: psycopg.Connection[TupleRow], ids: Sequence[int]) -> list[ledger.Work]:
        if not self._remembered:
            found = self._evaluator
            evaluator.remember(connection, name=found.name, version=found.version, spec=found.spec)
        return ledger.claim(connection, ids)

    def _sort(self, works: Sequence[ledger.Work], *, alone: bool) -> Sorted:
        plan = Sorted()
        for work in works:
            number = work.evaluation_id
            if work.solo and work.attempts > self._settings.max_attempts:
                plan.crashed.append(number)
            elif work.solo and not alone:
                plan.misplaced.append(number)
            elif not work.solo and work.attempts > 1:
                plan.suspects.append(number)
            elif not work.body:
                plan.missing.append(number)
            else:
                self._read(work, plan)
        return plan

    def _read(self, work: ledger.Work, plan: Sorted) -> None:
        try:
            interaction = self._decoder.decode(work.body)
        except (msgspec.DecodeError, RecursionError) as error:
            plan.malformed.append((work.evaluation_id, f"{type(error).__name__}: {error}"[:300]))
            return
        pairs = pipeline.estimated_pairs(interaction)
        if pairs > self._settings.answer_pairs:
            plan.oversize.append(work.evaluation_id)
        else:
            plan.ready.append(Answer(work=work, interaction=interaction, pairs=pairs))

    def _refuse(self, plan: Sorted) -> None:
        """End what nobody will check."""
        if not (plan.crashed or plan.missing or plan.oversize or plan.malformed):
            return

        def write(connection: psycopg.Connection[TupleRow]) -> None:
            ledger.fail(connection, plan.missing, "payload_missing")
            ledger.fail(connection, plan.oversize, "too_large")
            for number in plan.crashed:
                detail = f"{self._settings.max_attempts} attempts alone ended without a result"
                ledger.dead_letter(connection, number, "crash_loop", detail)
            for number, why in plan.malformed:
                ledger.dead_letter(connection, number, "invalid_schema", why)

        self._commit(write)
        logger.warning(
            "Answers refused: %d crashed, %d without text, %d too large, %d malformed",
            len(plan.crashed),
            len(plan.missing),
            len(plan.oversize),
            len(plan.malformed),
            extra={"action": "answers_refused"},
        )

    def _isolate(self, plan: Sorted, high: bool) -> None:
        """Send suspects alone; hand back answers that are alone already but came in company."""
        if plan.suspects or plan.misplaced:
            self._commit(lambda connection: ledger.release(connection, plan.misplaced))
            self._send_alone(plan.suspects, plan.misplaced, high)

    def _send_alone(self, suspects: Sequence[int], known: Sequence[int], high: bool) -> None:
        new = self._commit(lambda connection: ledger.mark_solo(connection, suspects))
        try:
            for number in (*new, *known):
                self._send([number], high)
        except DependencyUnavailable as error:
            logger.warning("%s; the reconciler sends them again", error, extra={"action": "solo_unsent"})

    def _evaluate(self, batch: Sequence[Answer], high: bool) -> None:
        try:
            evaluations = pipeline.evaluate_batch([answer.interaction for answer in batch], self._evaluator)
        except MemoryError:
            raise
        except Exception as error:  # whatever a model or a parser throws at one answer must not cost the others
            ids = [answer.work.evaluation_id for answer in batch]
            logger.exception("A batch failed", extra={"action": "batch_failed", "evaluation_ids": ids})
            if len(batch) > 1:
                self._send_alone(ids, (), high)
            else:
                self._fail(batch[0], error)
            return
        self._finalise(
            [
                results.Finished(
                    work=answer.work, evaluation=evaluation, labels=results.Labels.of(answer.interaction)
                )
                for answer, evaluation in zip(batch, evaluations, strict=True)
            ]
        )

    def _finalise(self, finished: Sequence[results.Finished]) -> None:
        try:
            late = self._settings.late_seconds
            self._commit(lambda connection: results.finalise(connection, finished, late_seconds=late))
        except psycopg.Error as error:
            if database.classify(error) != "invalid":
                raise
            if len(finished) > 1:
                for one in finished:
                    self._finalise([one])
                return
            logger.exception("Postgres refuses a result", extra={"action": "result_refused"})
            number = finished[0].work.evaluation_id
            self._commit(lambda connection: ledger.fail(connection, [number], "verifier_failed"))

    def _fail(self, answer: Answer, error: Exception) -> None:
        number = answer.work.evaluation_id
        logger.warning(
            "Answer %d failed: %s", number, type(error).__name__, extra={"action": "answer_failed", "id": number}
        )
        self._commit(lambda connection: ledger.fail(connection, [number], "verifier_failed"))

    def _opened(self) -> psycopg.Connection[TupleRow]:
        """Connect, without waiting for the disk at each commit.

        A crash of Postgres (not of a worker) may then undo the last transactions, each of them whole: the answers are
        `checking` again, and the reconciler has them evaluated again. Intake's rows are durable.
        """
        connection = self._connect()
        connection.execute("SET synchronous_commit TO off")
        connection.commit()
        return connection

    def _commit(self, work: Callable[[psycopg.Connection[TupleRow]], _T]) -> _T:
        """Run one transaction; wait for a Postgres that is away, up to `patience_seconds` (F11-F14)."""
        end = time.monotonic() + self._settings.patience_seconds
        for pause in _pauses():
            try:
                if self._connection is None:
                    self._connection = self._opened()
                return database.transaction(self._connection, work)
            except (psycopg.Error, DependencyUnavailable) as error:
                if database.classify(error) != "unavailable":
                    raise
                self.close()
                if time.monotonic() + pause > end:
                    raise DependencyUnavailable(
                        "Postgres does not answer", why=str(error)[:200], fix="check DATABASE_URL"
                    ) from error
                logger.warning(
                    "Postgres is away, trying again in %.1f s",
                    pause,
                    extra={"action": "retry", "reason": "db_unavailable"},
                )
            time.sleep(pause)
        raise AssertionError("unreachable")


def packed(answers: Sequence[Answer], limit: int) -> Iterator[list[Answer]]:
    """Cut answers into batches of at most `limit` estimated pairs; one larger answer is a batch of its own."""
    batch: list[Answer] = []
    pairs = 0
    for answer in answers:
        if batch and pairs + answer.pairs > limit:
            yield batch
            batch, pairs = [], 0
        batch.append(answer)
        pairs += answer.pairs
    if batch:
        yield batch


def _pauses() -> Iterator[float]:
    """At once the first time (a restarted server, F13), then doubled and jittered to 50..100 %."""
    yield 0.0
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter
        pause = min(MAX_PAUSE_SECONDS, pause * 2)
