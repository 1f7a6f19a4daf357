"""The judge in the loop, for `judge=true`: asked about every claim once, with a deadline, folded like offline (R32).

It shares breaker, budget and cross-check with the judge queue. Whatever goes wrong leaves the verifier's verdicts and
names the failure; it never raises.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from aftercheck_schemas import Evaluation, EvaluatorFailure, Interaction
from aftercheck_worker.api.checker import Checker
from aftercheck_worker.judge import back_end, budget, outcome
from aftercheck_worker.judge.engine import Judge, JudgePlan
from aftercheck_worker.judge.guard import Guarded
from aftercheck_worker.models.base import GeneratorError
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.judging import routing, verdicts
from aftercheck_worker.storage.judged import Judged
from aftercheck_worker.storage.judging import Provisional

logger = logging.getLogger(__name__)


class Opinion(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge made of an evaluation. `judged` and the new version's `spec` are None when it did not answer."""

    evaluation: Evaluation
    judged: Judged | None = None
    spec: dict[str, object] | None = None


class SecondOpinion:
    """Asks the configured judge; without one it says so. Belongs to the server's event loop.

    Args:
        settings: the judge's, and the fleet's budget.
        checker: its thread does the cross-check, its evaluator has the band.
    """

    def __init__(self, settings: Settings, checker: Checker) -> None:
        self._settings, self._checker = settings, checker
        generator, url = back_end.build(settings), settings.redis_url
        self._redis = budget.client(url.get_secret_value()) if generator is not None and url is not None else None
        purse = None if self._redis is None else budget.Budget(self._redis, settings.tenant, _limits(settings))
        self._generator = None if generator is None else Guarded(generator, purse)
        self._judge = None if self._generator is None else Judge(self._generator)

    async def judge(self, interaction: Interaction, before: Evaluation) -> Opinion:
        """Judge every claim that evidence can decide."""
        if self._judge is None or self._generator is None:
            return _failed(before, "judge_not_configured", "set AFTERCHECK_JUDGE_URL", frozenset())
        evaluator = self._checker.evaluator
        route = routing.route(before, evaluator.band, share="all", audit=0.0)
        if route is None:
            return Opinion(evaluation=before)
        provisional = Provisional(
            evaluation=before, why=route.why, audit=False, probability=1.0, claims=tuple(sorted(route.claims))
        )
        try:
            async with asyncio.timeout(self._settings.judge_seconds):
                judgement = await outcome.ask(
                    self._judge, interaction, provisional, JudgePlan(repeats=1, triad=False)
                )
                version, spec = outcome.version(evaluator, self._generator.info, self._settings)
                found, folded = await self._checker.elsewhere(
                    lambda: outcome.judged(interaction, before, judgement, route.claims, evaluator, version)
                )
        except TimeoutError:
            return _failed(before, "judge_deadline", "no judgement in time", route.claims)
        except GeneratorError as error:
            return _failed(before, f"judge_{error.reason}", type(error).__name__, route.claims)
        except Exception as error:  # noqa: BLE001 - a judge never costs the caller the verifier's verdict
            # No traceback: an error's text may quote the answer.
            logger.error("the judge failed: %s", type(error).__name__, extra={"action": "judge_failed"})
            return _failed(before, "judge_failed", type(error).__name__, route.claims)
        judged = Judged(
            why="all",
            audit=False,
            probability=1.0,
            judgement=judgement,
            verifier_faithfulness=before.faithfulness,
            agreed=folded.agreed,
            disagreed=folded.disagreed,
            refused=folded.refused,
        )
        return Opinion(evaluation=found, judged=judged, spec=spec)

    async def close(self) -> None:
        """Close the connections of judge and budget."""
        if self._generator is not None:
            await self._generator.close()
        if self._redis is not None:
            await self._redis.aclose()


def _limits(settings: Settings) -> budget.Limits:
    return budget.Limits(
        tokens=settings.judge_tokens_per_day,
        dollars=settings.judge_dollars_per_day,
        prompt_price=settings.judge_prompt_price,
        completion_price=settings.judge_completion_price,
    )


def _failed(before: Evaluation, reason: str, detail: str, decides: frozenset[str]) -> Opinion:
    failure = EvaluatorFailure(evaluator="judge", reason=reason, detail=detail)
    marked = tuple(verdicts.fallback(one) if one.claim_id in decides else one for one in before.verdicts)
    return Opinion(
        evaluation=msgspec.structs.replace(
            before, verdicts=marked, failures=(*before.failures, failure), decided_by="verifier_fallback"
        )
    )
