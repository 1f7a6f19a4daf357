"""One Celery message: claim its answers, evaluate them, write the results. Knows Postgres, knows no Celery.

Poison (architecture.md): attempts are counted and committed before the work. An answer that a dead batch leaves
behind is not tried with others again: it is sent alone, and is a dead letter (`crash_loop`) after three attempts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Evaluation, Interaction
from aftercheck_worker import app, pipeline
from aftercheck_worker.committing import Committer, Connect
from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.judging import routing
from aftercheck_worker.storage import database, evaluator, judging, ledger, results

logger = logging.getLogger(__name__)

Send = Callable[[Sequence[int], bool], None]
SendJudge = Callable[[Sequence[int]], None]


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
        self,
        settings: Settings,
        evaluator: Evaluator,
        connect: Connect,
        send: Send = app.send_check,
        send_judge: SendJudge = app.send_judge,
    ) -> None:
        self._settings = settings
        self._evaluator = evaluator
        self._committer = Committer(connect, settings.patience_seconds)
        self._commit = self._committer.commit
        self._send, self._send_judge = send, send_judge
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
        self._committer.close()

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
        waiting: dict[int, judging.Provisional] = {}
        finished: list[results.Finished] = []
        for answer, evaluation in zip(batch, evaluations, strict=True):
            provisional = self._routed(evaluation)
            if provisional is not None:
                waiting[answer.work.evaluation_id] = provisional
            else:
                labels = results.Labels.of(answer.interaction)
                finished.append(results.Finished(work=answer.work, evaluation=evaluation, labels=labels))
        if finished:
            self._finalise(finished)
        if waiting:
            self._park(waiting)

    def _routed(self, evaluation: Evaluation) -> judging.Provisional | None:
        """What waits for the judge; None when the verifier's word is the last."""
        found = self._settings
        if found.judge_url is None:
            return None
        route = routing.route(evaluation, self._evaluator.band, share=found.judge_share, audit=found.judge_audit)
        if route is None:
            return None
        return judging.Provisional(
            evaluation=evaluation,
            why=route.why,
            audit=route.audit,
            probability=route.probability,
            claims=tuple(sorted(route.claims)),
        )

    def _park(self, waiting: dict[int, judging.Provisional]) -> None:
        """Store what the verifier found, then ask for the judge. A lost message costs the judge, no answer."""
        seconds = self._settings.judge_seconds
        moved = self._commit(lambda connection: judging.park(connection, waiting, seconds))
        try:
            self._send_judge(moved)
        except DependencyUnavailable as error:
            logger.warning("%s; the reconciler sends them again", error, extra={"action": "judge_unsent"})

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
