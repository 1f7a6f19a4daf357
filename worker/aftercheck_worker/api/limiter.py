"""Requests per token and minute, counted in Redis so that all servers share one bucket (trust.md S24)."""

from __future__ import annotations

import logging
import time
from typing import Final

from redis import RedisError

from aftercheck_worker.api.problem import Problem
from aftercheck_worker.api.stream import Stream

logger = logging.getLogger(__name__)

PAUSE_SECONDS: Final = 5.0
"""After a Redis that did not answer nobody is limited for so long, and nobody waits for its timeout."""
BUCKET_LUA: Final = """
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local t = redis.call('TIME')
local now = t[1] + t[2] / 1000000
local held = redis.call('HMGET', KEYS[1], 'n', 't')
local level = math.min(burst, (tonumber(held[1]) or burst) + (now - (tonumber(held[2]) or now)) * rate)
local ok = 0
if level >= 1 then level, ok = level - 1, 1 end
redis.call('HSET', KEYS[1], 'n', tostring(level), 't', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], 120)
return {ok, tostring(level)}
"""
"""Token bucket; a table because a float in a Lua reply would be cut to an integer."""


class Limiter:
    """Token buckets. A Redis that is down limits nobody: refusing all would turn its outage into ours.

    Args:
        per_minute: requests that one token may make.
    """

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._open_until = 0.0

    def spend(self, stream: Stream, tenant: str, name: str) -> None:
        """Take one request from a token's bucket.

        Raises:
            Problem: 429 with Retry-After.
        """
        now = time.monotonic()
        if now < self._open_until:
            return
        key = f"aftercheck:{{{tenant}}}:rate:{name}"
        burst = max(1, self._per_minute // 6)
        try:
            ok, _ = stream.run(BUCKET_LUA, [key], [repr(self._per_minute / 60), str(burst)])
        except RedisError as error:
            self._open_until = now + PAUSE_SECONDS
            logger.warning("nobody is limited: %s", type(error).__name__, extra={"action": "limiter_open"})
            return
        if not ok:
            wait = str(max(1, round(60 / self._per_minute)))
            headers = {"Retry-After": wait, "RateLimit-Limit": str(self._per_minute), "RateLimit-Remaining": "0"}
            why = f"more than {self._per_minute} requests a minute; wait {wait} s"
            raise Problem(429, "rate_limited", why, headers)
