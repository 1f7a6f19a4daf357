"""What intake counts, exactly, between Redis and Postgres.

An increment is made in Redis by the same script that takes the counted thing away. `flush` moves the increments to
Postgres: Redis sets them aside under a stamp (server microseconds, always growing), Postgres adds them only when the
stamp is above the last one it has seen, in the same transaction, and Redis forgets them afterwards. A process killed
anywhere in between leaves a set that the next flush finds, and Postgres knows whether it was added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import ALLOW_FULL_LUA, Link, Script, as_pairs

SEPARATOR: Final = "\x1f"
STAMP: Final = b"@stamp"

Apply = Callable[[int, Mapping[tuple[str, str, str], int]], None]
"""Add increments by (metric, app, key) unless the stamp was seen; commits."""

_SET_ASIDE: Final = Script(
    ALLOW_FULL_LUA
    + """
local aside = KEYS[1] .. ':aside'
if redis.call('EXISTS', aside) == 0 then
  if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
  local t = redis.call('TIME')
  local stamp = math.max(t[1] * 1000000 + t[2], tonumber(redis.call('GET', KEYS[1] .. ':stamp') or '0') + 1)
  stamp = string.format('%.0f', stamp)
  redis.call('RENAME', KEYS[1], aside)
  redis.call('HSET', aside, '@stamp', stamp)
  redis.call('SET', KEYS[1] .. ':stamp', stamp)
end
return redis.call('HGETALL', aside)
"""
)

_FORGET: Final = Script(
    """
if redis.call('HGET', KEYS[1] .. ':aside', '@stamp') == ARGV[1] then return redis.call('DEL', KEYS[1] .. ':aside') end
return 0
"""
)


def counter(metric: str, app: str = "", key: str = "") -> str:
    """Name of a counter as the scripts write it."""
    return f"{metric}{SEPARATOR}{app}{SEPARATOR}{key}"


def flush(link: Link, keys: Keys, apply: Apply) -> bool:
    """Move the increments to Postgres. Exactly once, also under kill -9 and two intakes.

    Returns:
        False when there was nothing to move.

    Raises:
        redis.exceptions.RedisError: Redis does not answer; nothing is lost, flush again.
        Exception: whatever `apply` raises; nothing is lost, flush again.
    """
    aside = as_pairs(link.run(_SET_ASIDE, [keys.counters], []))
    if not aside:
        return False
    stamp = aside.pop(STAMP)
    increments: dict[tuple[str, str, str], int] = {}
    for name, number in aside.items():
        metric, _, rest = name.decode("utf-8", "replace").partition(SEPARATOR)
        app, _, key = rest.rpartition(SEPARATOR)  # an app may have any name
        increments[metric, app, key] = increments.get((metric, app, key), 0) + int(number)
    apply(int(stamp), increments)
    link.run(_FORGET, [keys.counters], [stamp])
    return True
