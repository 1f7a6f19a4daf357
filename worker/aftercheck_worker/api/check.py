"""POST /monitor/check: the engine in the loop (R32). Stored with origin `check`, outside all rates (R53)."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request

from aftercheck_worker.api import replying
from aftercheck_worker.api.access import Checks
from aftercheck_worker.api.contract import CheckReply, CheckRequest
from aftercheck_worker.api.question import Question
from aftercheck_worker.api.recorder import Record
from aftercheck_worker.api.second_opinion import Opinion
from aftercheck_worker.api.state import state_of

router: Final = APIRouter()


@router.post("/monitor/check", tags=["check"])
async def check(request: Request, body: CheckRequest, token: Checks) -> CheckReply:
    """Check an answer against its evidence before it leaves. With `judge` an LLM judges every claim too."""
    state = state_of(request)
    question = Question(body, state.settings, state.memory)
    found = await state.checker.check(question.interaction)
    opinion = await state.judge.judge(question.interaction, found) if body.judge else Opinion(evaluation=found)
    state.recorder.put(
        Record(
            tenant=token.tenant,
            interaction=question.interaction,
            evaluation=opinion.evaluation,
            judged=opinion.judged,
            spec=opinion.spec,
        )
    )
    return replying.reply(question, opinion.evaluation)
