"""What `aftercheck doctor` says of the judge: does it answer, and is it a stranger to what it judges (R22)."""

from __future__ import annotations

import asyncio
from typing import Final

import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.cli import checks
from aftercheck_worker.cli.checks import Finding
from aftercheck_worker.errors import AftercheckError
from aftercheck_worker.models.base import GeneratorError, ModelInfo
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.judging import kinship

SECONDS: Final = 10.0
DAYS: Final = 7
MOST: Final = 50
"""Models that are looked at, the most frequent first."""


def endpoint(settings: Settings) -> list[Finding]:
    """Ask the judge for one word, where there is one."""
    if settings.judge_url is None:
        return [checks.ok("judge", "none: the verifier decides alone")]
    try:
        info = asyncio.run(_asked(settings.model_copy(update={"judge_call_seconds": SECONDS})))
    except AftercheckError as error:
        return [checks.failed("judge", error)]
    except GeneratorError as error:
        fix = "check AFTERCHECK_JUDGE_URL, AFTERCHECK_JUDGE_MODEL and AFTERCHECK_JUDGE_KEY"
        return [checks.warn("judge", f"{settings.judge_model}: {error}; the verifier decides meanwhile", fix)]
    mode = info.parameters.get("mode", "unknown")
    found = [checks.ok("judge", f"{info.name}, replies as {mode}, {settings.judge_share}")]
    if not (settings.judge_prompt_price or settings.judge_completion_price):
        found.append(checks.ok("judge price", "none set: cost per answer is shown as 0"))
    return found


async def _asked(settings: Settings) -> ModelInfo:
    # Imported here: a judge's client costs every other command half a second.
    from aftercheck_worker.judge import back_end
    from aftercheck_worker.judge.guard import Guarded

    generator = back_end.build(settings)
    if generator is None:
        raise AssertionError("the caller has seen the URL")
    guarded = Guarded(generator)
    try:
        await guarded.generate('Reply with {"ok": true}.', "Now.", schema=None, max_tokens=20)
        return guarded.info
    finally:
        await guarded.close()


def kin(connection: psycopg.Connection[TupleRow], settings: Settings) -> list[Finding]:
    """Warn of models that the judge is too near to: of its family, or not smaller than itself."""
    if settings.judge_url is None:
        return []
    rows = connection.execute(
        "SELECT model FROM evaluation WHERE finalised_at > now() - make_interval(days => %s) AND model <> ''"
        " AND tenant = %s GROUP BY model ORDER BY count(*) DESC LIMIT %s",
        (DAYS, settings.tenant, MOST),
    ).fetchall()
    told = {
        kinship.SAME_FAMILY: "of the judge's own family: it may like its relatives' mistakes",
        kinship.NOT_LARGER: "not smaller than the judge: it may not see their mistakes",
    }
    found: list[Finding] = []
    for label, why in told.items():
        models = [str(row[0]) for row in rows if label in kinship.labels(settings.judge_model, str(row[0]))]
        if models:
            detail = f"{', '.join(models[:5])}{' and others' if len(models) > 5 else ''}: {why}"
            found.append(checks.warn("judge kinship", detail, "judge with a larger model of another family"))
    return found
