"""The fleet's budget of tokens and money per day, kept in Redis so that all workers share it (O-39, O-40).

A call reserves what it may cost at most and settles what it did cost. The keys end two days after they began; the
day is UTC. Redis that does not answer lets nothing through: an unknown balance is no budget.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable
from typing import Final, cast

import msgspec
import redis.asyncio
import redis.exceptions

from aftercheck_worker.models.base import Completion, GeneratorError

KEEP_SECONDS: Final = 2 * 24 * 3600
MICRO: Final = 1_000_000
TIMEOUT_SECONDS: Final = 5.0
CONNECTIONS: Final = 8
"""Commands in flight: hundreds of calls may want their balance at once, and the client's own pool is not fair."""

_RESERVE: Final = """
local tokens = tonumber(redis.call('HGET', KEYS[1], 'tokens') or '0')
local micros = tonumber(redis.call('HGET', KEYS[1], 'micros') or '0')
local cap, money = tonumber(ARGV[3]), tonumber(ARGV[4])
if tokens + tonumber(ARGV[1]) > cap then return 'tokens' end
if money > 0 and micros + tonumber(ARGV[2]) > money then return 'dollars' end
redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'micros', ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[5])
return 'ok'
"""
_SETTLE: Final = """
redis.call('HINCRBY', KEYS[1], 'tokens', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'micros', ARGV[2])
return 'ok'
"""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Caps of a day and prices.

    Attributes:
        tokens: prompt and completion together. dollars: 0 = no cap.
        prompt_price, completion_price: US dollars per million tokens.
    """

    tokens: int
    dollars: float = 0.0
    prompt_price: float = 0.0
    completion_price: float = 0.0

    def micros(self, prompt: int, completion: int) -> int:
        """Cost in millionths of a dollar."""
        return round(prompt * self.prompt_price + completion * self.completion_price)


class Reserved(msgspec.Struct, frozen=True, kw_only=True):
    """What a call has set aside: tokens, millionths of a dollar, and the key of its day."""

    key: str
    tokens: int
    micros: int


def budget_key(tenant: str, day: dt.date) -> str:
    """Name of the hash of one day."""
    return f"aftercheck:{{{tenant}}}:judge:budget:{day:%Y%m%d}"


def client(url: str) -> redis.asyncio.Redis:
    """Client with short timeouts; it connects at its first command, inside the caller's event loop."""
    made: redis.asyncio.Redis = redis.asyncio.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
        url,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        client_name="aftercheck-judge",
    )
    return made


class Budget:
    """Reserves and settles. Belongs to one event loop.

    Args:
        client: of the Redis that all workers share.
        tenant: owner of the budget.
        limits: caps and prices.
        today: the day in UTC.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        tenant: str,
        limits: Limits,
        *,
        today: Callable[[], dt.date] = lambda: dt.datetime.now(dt.UTC).date(),
    ) -> None:
        self._client, self._tenant, self._limits, self._today = client, tenant, limits, today
        self._slots = asyncio.Semaphore(CONNECTIONS)

    async def reserve(self, prompt: int, completion: int) -> Reserved:
        """Set aside what a call may cost at most.

        Raises:
            GeneratorError: `budget` when the day's cap would be passed or nobody can say.
        """
        limits = self._limits
        wanted = Reserved(
            key=budget_key(self._tenant, self._today()),
            tokens=prompt + completion,
            micros=limits.micros(prompt, completion),
        )
        arguments = (wanted.tokens, wanted.micros, limits.tokens, round(limits.dollars * MICRO), KEEP_SECONDS)
        try:
            async with self._slots:
                said = await cast(
                    "Awaitable[bytes]", self._client.eval(_RESERVE, 1, wanted.key, *map(str, arguments))
                )
        except (redis.exceptions.RedisError, OSError) as error:
            raise GeneratorError("budget", f"the balance is unknown: {error}"[:200]) from None
        if said != b"ok":
            raise GeneratorError("budget", f"the {said.decode()} of today are spent")
        return wanted

    async def settle(self, reserved: Reserved, completion: Completion | None) -> None:
        """Replace a reservation by the true cost; None = the call gave no reply and counts as free.

        A settlement that Redis does not take leaves the reservation: the balance errs on the safe side.
        """
        prompt = completion.prompt_tokens if completion else 0
        written = completion.completion_tokens if completion else 0
        if completion is not None and not prompt + written:
            return  # an endpoint that reports no usage: what was reserved is the best estimate
        difference = (prompt + written - reserved.tokens, self._limits.micros(prompt, written) - reserved.micros)
        try:
            async with self._slots:
                await cast("Awaitable[bytes]", self._client.eval(_SETTLE, 1, reserved.key, *map(str, difference)))
        except (redis.exceptions.RedisError, OSError):
            return
