"""How much waits, for the exporter and `aftercheck stats`."""

from __future__ import annotations

from typing import Final

import msgspec

from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import ALLOW_FULL_LUA, Link, Script, as_bytes, as_int, as_list

ALIVE_SECONDS: Final = 15


class StreamState(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in Redis for one tenant.

    Attributes:
        depth: stream entries not taken off yet. bytes: their payload bytes.
        oldest_age_seconds: age of the oldest one by the server's clock, None when there is none.
        due: traces that wait to become ready or to be read.
        cold_bytes: bytes of unsampled traces.
        cold_horizon: seconds since the epoch from which on every unsampled trace is still there, None when the
            cold store is empty.
    """

    depth: int
    bytes: int
    oldest_age_seconds: float | None
    due: int
    cold_bytes: int
    cold_horizon: float | None


def stream_state(link: Link, tenant: str = "default") -> StreamState:
    """Read the state.

    Raises:
        redis.exceptions.RedisError: Redis does not answer.
    """
    keys = Keys(tenant)
    oldest = as_list(link.call("XRANGE", keys.stream, "-", "+", "COUNT", 1))
    bucket = as_list(link.call("ZRANGE", keys.cold, 0, 0))
    seconds, micros = as_list(link.call("TIME"))
    age = None
    if oldest:
        milliseconds = int(as_bytes(as_list(oldest[0])[0]).partition(b"-")[0])
        age = max(0.0, as_int(seconds) + as_int(micros) / 1e6 - milliseconds / 1000)
    return StreamState(
        depth=as_int(link.call("XLEN", keys.stream)),
        bytes=as_int(link.call("GET", keys.bytes)),
        oldest_age_seconds=age,
        due=as_int(link.call("ZCARD", keys.due)),
        cold_bytes=as_int(link.call("GET", keys.cold_bytes)),
        cold_horizon=as_int(bucket[0]) / 1000 if bucket else None,
    )


def intakes(link: Link, tenant: str = "default") -> list[str]:
    """Names of the intakes that gave a sign of life within the last `ALIVE_SECONDS`.

    Raises:
        redis.exceptions.RedisError: Redis does not answer.
    """
    seconds = as_int(as_list(link.call("TIME"))[0])
    names = as_list(link.call("ZRANGEBYSCORE", Keys(tenant).intakes, seconds - ALIVE_SECONDS, "+inf"))
    return [as_bytes(name).decode("utf-8", "replace") for name in names]


_BEAT: Final = Script(
    ALLOW_FULL_LUA
    + """
local now = redis.call('TIME')[1]
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
redis.call('ZADD', KEYS[2], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - 3600)
return 1
"""
)


def beat(link: Link, keys: Keys, name: str, state: bytes) -> None:
    """Give a sign of life: `state` (JSON) under the intake's own key, which vanishes after `ALIVE_SECONDS`.

    Raises:
        redis.exceptions.RedisError: Redis does not answer.
    """
    link.run(_BEAT, [keys.heartbeat(name), keys.intakes], [name, state, ALIVE_SECONDS])
