"""The judge without services, for files of answers: the same routing, prompts and folding, no queue and no budget."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from aftercheck_schemas import Evaluation, EvaluatorFailure, Interaction
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.judge import outcome
from aftercheck_worker.judge.engine import Judge, JudgePlan
from aftercheck_worker.judge.guard import Guarded
from aftercheck_worker.models.base import Generator, GeneratorError
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.judging import routing, verdicts
from aftercheck_worker.storage.judging import Provisional


class OfflineJudge:
    """Judges the uncertain answers of a batch, or all of them; nothing is audited. Use it as a context.

    Args:
        settings: share, repeats, triad, deadline.
        evaluator: the verifier, for the band and the cross-check.
        generator: the back end.
    """

    def __init__(self, settings: Settings, evaluator: Evaluator, generator: Generator) -> None:
        self._settings, self._evaluator = settings, evaluator
        self._generator = Guarded(generator)
        self._judge = Judge(self._generator)
        self._slots = asyncio.Semaphore(settings.batch_size)
        self._runner = asyncio.Runner()
        self.calls = self.prompt_tokens = self.completion_tokens = 0

    def __enter__(self) -> OfflineJudge:
        return self

    def __exit__(self, *_: object) -> None:
        with self._runner as runner:
            runner.run(self._generator.close())

    def judge(self, answers: Sequence[tuple[Interaction, Evaluation]]) -> list[Evaluation]:
        """Return the final evaluations, in order. A judge that fails leaves the verifier's, marked as such."""
        found = self._runner.run(self._all(answers))
        calls, prompt, completion = self._generator.spent.take()
        self.calls += calls
        self.prompt_tokens += prompt
        self.completion_tokens += completion
        return found

    async def _all(self, answers: Sequence[tuple[Interaction, Evaluation]]) -> list[Evaluation]:
        return list(await asyncio.gather(*(self._one(*answer) for answer in answers)))

    async def _one(self, interaction: Interaction, before: Evaluation) -> Evaluation:
        route = routing.route(before, self._evaluator.band, share=self._settings.judge_share, audit=0.0)
        if route is None:
            return before
        provisional = Provisional(
            evaluation=before,
            why=route.why,
            audit=route.audit,
            probability=route.probability,
            claims=tuple(sorted(route.claims)),
        )
        band = self._evaluator.band
        careful = any(routing.uncertain(verdict, band) for verdict in before.verdicts)
        plan = JudgePlan(repeats=self._settings.judge_repeats if careful else 1, triad=self._settings.judge_triad)
        try:
            async with self._slots, asyncio.timeout(self._settings.judge_seconds):
                judgement = await outcome.ask(self._judge, interaction, provisional, plan)
        except TimeoutError:
            return _fallen_back(before, route, "deadline", "no judgement in time")
        except GeneratorError as error:
            return _fallen_back(before, route, error.reason, str(error))
        name, _ = outcome.version(self._evaluator, self._generator.info, self._settings)
        found, _ = outcome.judged(interaction, before, judgement, route.claims, self._evaluator, name)
        return found


def _fallen_back(before: Evaluation, route: routing.Route, reason: str, detail: str) -> Evaluation:
    failure = EvaluatorFailure(evaluator="judge", reason=f"judge_{reason}", detail=detail[:200])
    return msgspec.structs.replace(
        before,
        verdicts=tuple(verdicts.fallback(v) if v.claim_id in route.claims else v for v in before.verdicts),
        failures=(*before.failures, failure),
        decided_by="verifier_fallback",
    )
