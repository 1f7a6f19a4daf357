"""One message of the judge queue: judge many answers at once, fold, finish each exactly once. Knows no Celery.

A message is a hint: the process takes the named answers and whatever else waits, up to a batch, so that few messages
still keep the endpoint busy. Calls run in one event loop; folding and writing run beside it, one group at a time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import EvaluatorFailure, Interaction, Judgement
from aftercheck_worker.committing import Committer, Connect
from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.judge import back_end, budget, canaries, outcome
from aftercheck_worker.judge.engine import Judge, JudgePlan
from aftercheck_worker.judge.guard import Guarded
from aftercheck_worker.models.base import GeneratorError
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.judging.routing import drawn, uncertain
from aftercheck_worker.storage import database, judging, ledger, results, totals
from aftercheck_worker.storage import evaluator as evaluator_table
from aftercheck_worker.storage.judging import JUDGING, Waiting
from aftercheck_worker.storage.totals import TotalKey

logger = logging.getLogger(__name__)

LONGEST_SLEEP: Final = 5.0
"""A Retry-After above this puts the answer off instead of holding its slot."""
MARGIN_SECONDS: Final = 1.0
"""Kept of the deadline for folding and writing."""
DOLLARS: Final = 1_000_000


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one answer's judging. One of `judgement`, `failure`, `delay` is set, or none: its text is gone.

    Attributes:
        delay: seconds after which the endpoint wants to be asked again.
        canary: whether the canary that went along was judged right; None when there was none.
    """

    waiting: Waiting
    interaction: Interaction | None = None
    judgement: Judgement | None = None
    failure: EvaluatorFailure | None = None
    delay: float | None = None
    canary: bool | None = None


class Judger:
    """Judges with one generator over one connection; lives as long as its process.

    Args:
        settings: deadlines, repeats, shares and prices.
        evaluator: the verifier, for the cross-check.
        connect: opens a connection to Postgres.
        generator: guarded by breaker and budget.
        canary_log: takes the outcomes of canaries, None without Redis.
    """

    def __init__(
        self,
        settings: Settings,
        evaluator: Evaluator,
        connect: Connect,
        generator: Guarded,
        canary_log: canaries.Log | None = None,
    ) -> None:
        self._settings, self._evaluator, self._generator = settings, evaluator, generator
        self._judge = Judge(generator)
        self._canary_log = canary_log
        self._committer = Committer(connect, settings.patience_seconds)
        self._commit = self._committer.commit
        self._remembered: set[str] = set()
        self._runner = asyncio.Runner()

    def judge(self, ids: Sequence[int]) -> None:
        """Judge the answers among `ids` that still wait, and others that do.

        Raises:
            DependencyUnavailable: Postgres did not answer for `patience_seconds`.
        """
        self._runner.run(self._batch(ids))

    def close(self) -> None:
        """Close all connections and the event loop."""
        self._committer.close()
        with self._runner as runner:
            runner.run(self._ended())

    async def _ended(self) -> None:
        await self._generator.close()
        if self._canary_log is not None:
            await self._canary_log.close()

    async def _batch(self, ids: Sequence[int]) -> None:
        """Keep a batch of answers in flight while any waits, as long as the task's time limit allows."""
        size, began = self._settings.batch_size, time.monotonic()
        last = self._settings.task_time_limit - self._settings.judge_seconds - 2 * self._settings.patience_seconds
        running = {asyncio.create_task(self._one(one)) for one in await self._claim(ids, size)}
        try:
            while running:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                found = [task.result() for task in done]
                await asyncio.to_thread(self._write, found)
                await asyncio.to_thread(self._count, found, self._generator.spent.take())
                await self._note(found)
                if len(running) <= size // 2 and time.monotonic() - began < last:
                    more = await self._claim((), size - len(running))
                    running |= {asyncio.create_task(self._one(one)) for one in more}
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _claim(self, ids: Sequence[int], limit: int) -> list[Waiting]:
        lease = self._settings.judge_seconds
        return await asyncio.to_thread(self._commit, lambda connection: judging.claim(connection, ids, lease, limit))

    async def _one(self, waiting: Waiting) -> Done:
        """Judge one answer inside its deadline. Never raises: whatever goes wrong is the failure of this answer."""
        interaction, provisional = outcome.read(waiting.work), waiting.provisional
        if interaction is None or provisional is None:
            return Done(waiting=waiting)
        base = Done(waiting=waiting, interaction=interaction)
        try:
            async with asyncio.timeout(max(0.0, waiting.left - MARGIN_SECONDS)):
                judgement = await self._judged(interaction, provisional)
                canary = await self._canary(waiting.work.trace_id)
        except TimeoutError:
            return msgspec.structs.replace(base, failure=_failure("deadline", "no judgement in time"))
        except GeneratorError as error:
            wait = error.retry_after
            if wait is not None and LONGEST_SLEEP < wait < waiting.left - LONGEST_SLEEP:
                return msgspec.structs.replace(base, delay=wait)
            return msgspec.structs.replace(base, failure=_failure(error.reason, str(error)))
        except Exception as error:
            logger.exception("The judge failed", extra={"action": "judge_failed", "id": waiting.work.evaluation_id})
            return msgspec.structs.replace(base, failure=_failure("failed", type(error).__name__))
        return msgspec.structs.replace(base, judgement=judgement, canary=canary)

    async def _judged(self, interaction: Interaction, provisional: judging.Provisional) -> Judgement:
        careful = provisional.why == "band" or provisional.audit or interaction.origin == "golden"
        if provisional.why == "all":
            band = any(uncertain(verdict, self._evaluator.band) for verdict in provisional.evaluation.verdicts)
            careful = band or drawn(interaction.trace_id, "audit", self._settings.judge_audit)
        plan = JudgePlan(repeats=self._settings.judge_repeats if careful else 1, triad=self._settings.judge_triad)
        return await outcome.ask(self._judge, interaction, provisional, plan)

    async def _canary(self, trace_id: str) -> bool | None:
        """Let a canary go along with 1 in 200 answers; an endpoint that fails on it says nothing about judging."""
        if not drawn(trace_id, "canary", self._settings.judge_canaries):
            return None
        try:
            return await canaries.ask(self._judge)
        except GeneratorError:
            return None

    async def _note(self, found: Sequence[Done]) -> None:
        if self._canary_log is not None:
            for done in found:
                if done.canary is not None:
                    await self._canary_log.note(passed=done.canary)

    def _write(self, found: Sequence[Done]) -> None:
        """Finish a group in one transaction; when Postgres refuses one of its rows, each alone."""
        version, spec = outcome.version(self._evaluator, self._generator.info, self._settings)
        finished = [one for done in found if (one := self._finished(done, version)) is not None]
        try:
            self._commit(lambda connection: self._store(connection, found, finished, version, spec))
        except psycopg.Error as error:
            if database.classify(error) != "invalid":
                raise
            if len(found) > 1:
                for done in found:
                    self._write([done])
                return
            logger.exception("Postgres refuses a judged result", extra={"action": "result_refused"})
            number = found[0].waiting.work.evaluation_id
            self._commit(lambda connection: ledger.fail(connection, [number], "verifier_failed", JUDGING))
        else:
            self._remembered.add(version)

    def _finished(self, done: Done, version: str) -> results.Finished | None:
        work, provisional = done.waiting.work, done.waiting.provisional
        if provisional is None or done.interaction is None:
            return None
        if done.judgement is not None:
            return outcome.finished(work, done.interaction, provisional, done.judgement, self._evaluator, version)
        if done.failure is not None:
            return outcome.fallen_back(work, done.interaction, provisional, done.failure)
        return None

    def _store(
        self,
        connection: psycopg.Connection[TupleRow],
        found: Sequence[Done],
        finished: Sequence[results.Finished],
        version: str,
        spec: dict[str, object],
    ) -> None:
        if version not in self._remembered:
            evaluator_table.remember(connection, name=self._evaluator.name, version=version, spec=spec)
        for done in found:
            if done.delay is not None:
                judging.put_off(connection, [done.waiting.work.evaluation_id], done.delay)
        gone = [d.waiting.work.evaluation_id for d in found if d.interaction is None or d.waiting.provisional is None]
        ledger.fail(connection, gone, "payload_missing", JUDGING)
        open_ids = judging.open_ids(connection, [one.work.evaluation_id for one in finished])
        mine = [one for one in finished if one.work.evaluation_id in open_ids]
        late = [one for one in finished if one.work.evaluation_id not in open_ids]
        for one in mine:
            if one.judged is not None and one.judged.judgement is not None:
                judging.record(connection, one.work, one.evaluation.evaluator_version, one.judged.judgement)
        judging.settle(connection, [one.work for one in mine])
        kept = [
            one
            for one in late
            if one.judged is not None
            and one.judged.judgement is not None
            and judging.record_late(connection, one.work, one.judged.judgement)
        ]
        results.finalise(
            connection, mine, late_seconds=self._settings.late_seconds, expected=JUDGING, also=_late(kept)
        )

    def _count(self, found: Sequence[Done], spent: tuple[int, int, int]) -> None:
        """Count what the answers themselves do not: calls, tokens, money, canaries."""
        name, tenant = self._evaluator.name, self._settings.tenant
        calls, prompt, completion = spent
        dollars = prompt * self._settings.judge_prompt_price + completion * self._settings.judge_completion_price
        sums: dict[TotalKey, float] = {
            TotalKey(totals.JUDGE_CALLS, evaluator=name): calls,
            TotalKey(totals.JUDGE_TOKENS, evaluator=name, key="prompt"): prompt,
            TotalKey(totals.JUDGE_TOKENS, evaluator=name, key="completion"): completion,
            TotalKey(totals.JUDGE_DOLLARS, evaluator=name): dollars / DOLLARS,
            TotalKey(totals.CANARY, evaluator=name, key="passed"): sum(done.canary is True for done in found),
            TotalKey(totals.CANARY, evaluator=name, key="failed"): sum(done.canary is False for done in found),
        }
        self._commit(lambda connection: totals.add(connection, tenant, sums))


def _late(kept: Sequence[results.Finished]) -> dict[str, dict[TotalKey, float]]:
    """Judgements that came after their answers were final, by tenant."""
    sums: dict[str, dict[TotalKey, float]] = defaultdict(lambda: defaultdict(float))
    for one in kept:
        labels = TotalKey(totals.JUDGE_ANSWERS, one.work.app, evaluator=one.evaluation.evaluator, key="late")
        sums[one.work.tenant][labels._replace(origin=one.work.origin)] += 1
    return sums


def _failure(reason: str, detail: str) -> EvaluatorFailure:
    return EvaluatorFailure(evaluator="judge", reason=f"judge_{reason}", detail=detail[:200])


def open_judger(settings: Settings, evaluator: Evaluator, connect: Connect) -> Judger:
    """Return the judger that the settings describe; connects to nothing yet.

    Raises:
        ConfigurationError: there is no judge, no Redis for its budget, no price for its dollars, or no time for it.
    """
    generator = back_end.build(settings)
    if generator is None:
        raise ConfigurationError("There is no judge", why="AFTERCHECK_JUDGE_URL is not set", fix="set it")
    if settings.redis_url is None:
        raise ConfigurationError("The judge has no budget", why="REDIS_URL is not set", fix="set it")
    if settings.judge_dollars_per_day and not (settings.judge_prompt_price or settings.judge_completion_price):
        raise ConfigurationError(
            "The judge's budget in dollars cannot be kept",
            why="AFTERCHECK_JUDGE_PROMPT_PRICE and AFTERCHECK_JUDGE_COMPLETION_PRICE are 0",
            fix="set the endpoint's prices, or AFTERCHECK_JUDGE_DOLLARS_PER_DAY=0",
        )
    needed = settings.judge_seconds + 2 * settings.patience_seconds
    if needed > settings.task_time_limit:
        raise ConfigurationError(
            f"The judge's deadline of {settings.judge_seconds:g} s does not fit into a task",
            why=f"with the patience for Postgres it needs {needed:g} s, Celery ends a task after"
            f" {settings.task_time_limit} s",
            fix="lower AFTERCHECK_JUDGE_SECONDS, or raise AFTERCHECK_TASK_TIME_LIMIT and"
            " AFTERCHECK_VISIBILITY_TIMEOUT",
        )
    client = budget.client(settings.redis_url.get_secret_value())
    limits = budget.Limits(
        tokens=settings.judge_tokens_per_day,
        dollars=settings.judge_dollars_per_day,
        prompt_price=settings.judge_prompt_price,
        completion_price=settings.judge_completion_price,
    )
    guarded = Guarded(generator, budget.Budget(client, settings.tenant, limits))
    return Judger(settings, evaluator, connect, guarded, canaries.Log(client, settings.tenant))
