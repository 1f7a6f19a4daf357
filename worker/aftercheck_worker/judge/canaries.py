"""Canaries: invented answers with one true and one false claim, mixed in among real ones (trust S14).

They measure the judge alone, quotes checked, no cross-check: a judge that always says supported fails every one.
"""

from __future__ import annotations

import contextlib
import json
import random
import secrets
from collections.abc import Awaitable
from functools import lru_cache
from importlib import resources
from typing import Final, cast

import msgspec
import redis.asyncio
import redis.exceptions

from aftercheck_schemas import Claim, Interaction, Judgement, Passage
from aftercheck_worker.judge.engine import Judge, JudgePlan

KEPT: Final = 200
"""Newest outcomes behind the accuracy gauge."""


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """A passage with a claim that follows from it and one that does not."""

    id: str
    question: str
    passage: str
    right: str = msgspec.field(name="true")
    wrong: str = msgspec.field(name="false")


@lru_cache(maxsize=1)
def known() -> tuple[Canary, ...]:
    """All canaries, from `canaries.json`."""
    text = (resources.files("aftercheck_worker") / "judge" / "canaries.json").read_text(encoding="utf-8")
    return tuple(msgspec.convert(json.loads(text), list[Canary]))


async def ask(judge: Judge, chance: random.Random | None = None) -> bool:
    """Judge one canary, drawn at random; True when both of its verdicts are right.

    Raises:
        GeneratorError: no reply, so nothing was measured.
    """
    chance = chance or random.Random(secrets.randbits(64))  # noqa: S311 - a draw, not a secret
    canary = chance.choice(known())
    first = chance.random() < 0.5
    texts = (canary.right, canary.wrong) if first else (canary.wrong, canary.right)
    claims = (
        Claim(id="c1", text=texts[0], start=0, end=len(texts[0])),
        Claim(id="c2", text=texts[1], start=len(texts[0]) + 1, end=len(texts[0]) + 1 + len(texts[1])),
    )
    passage = Passage(source_id="1", text=canary.passage)
    interaction = Interaction(
        trace_id=f"{chance.getrandbits(128):032x}",
        span_id=f"{chance.getrandbits(64):016x}",
        app="",
        question=canary.question,
        answer=" ".join(texts),
        passages=(passage,),
    )
    found = await judge.judge(interaction, claims, (passage,), JudgePlan(triad=False))
    return passed(found, "c1" if first else "c2")


def passed(judgement: Judgement, right: str) -> bool:
    """True when the claim `right` is supported and every other one contradicted or not found."""
    return all(
        claim.status == "supported" if claim.claim_id == right else claim.status in ("contradicted", "not_found")
        for claim in judgement.claims
    )


def outcomes_key(tenant: str) -> str:
    """Name of the list of the newest outcomes, `1` or `0`, newest first."""
    return f"aftercheck:{{{tenant}}}:judge:canaries"


class Log:
    """Keeps the newest outcomes in Redis, where the exporter reads them. A loss costs a gauge, no verdict."""

    def __init__(self, client: redis.asyncio.Redis, tenant: str) -> None:
        self._client, self._key = client, outcomes_key(tenant)

    async def close(self) -> None:
        """Close the client, which the budget shares."""
        await self._client.aclose()

    async def note(self, *, passed: bool) -> None:
        """Keep one outcome."""
        with contextlib.suppress(redis.exceptions.RedisError, OSError):
            await self._client.lpush(self._key, str(int(passed)))
            await cast("Awaitable[str]", self._client.ltrim(self._key, 0, KEPT - 1))
