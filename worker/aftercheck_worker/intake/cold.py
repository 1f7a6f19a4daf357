"""Unsampled traces, kept undecoded so that a thumbs-down can still force an evaluation (R6).

Buckets are hashes, one per 10 minutes or per sixteenth of the byte cap, whichever is full first; the oldest bucket
goes when the cap or the age is passed, and the horizon says since when everything is still there. A trace's first
chunk stands under its trace id, further chunks under the id and one byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import ALLOW_FULL_LUA, Link, Script, as_bytes, as_list

COLD_LUA: Final = """
local function now_ms()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local counts = {}
local function count(metric, app, key, n)
  local name = metric .. '\\31' .. app .. '\\31' .. key
  counts[name] = (counts[name] or 0) + (n or 1)
end
local function write_counts(prefix)
  for name, n in pairs(counts) do redis.call('HINCRBY', prefix .. 'counters', name, n) end
end
local bucket, bucket_bytes = nil, 0
local function open_bucket(prefix, cap, now)
  local newest = redis.call('ZREVRANGE', prefix .. 'cold', 0, 0)[1]
  if newest and now - tonumber(newest) < 600000 then
    local held = tonumber(redis.call('HGET', prefix .. 'cold:sizes', newest) or '0')
    if held < cap / 16 then bucket = newest return end
  end
  if newest and tonumber(newest) >= now then now = tonumber(newest) + 1 end
  bucket = string.format('%.0f', now)
  redis.call('ZADD', prefix .. 'cold', bucket, bucket)
end
local function keep_cold(prefix, cap, now, tid, record)
  if cap <= 0 then return 'trace' end
  if not bucket then open_bucket(prefix, cap, now) end
  local key, field, n = prefix .. 'cold:' .. bucket, tid, 0
  while redis.call('HSETNX', key, field, record) == 0 do
    if string.sub(redis.call('HGET', key, field), 1, 8) == string.sub(record, 1, 8) then return 'duplicate' end
    n = n + 1
    if n > 255 then return 'evicted' end
    field = tid .. string.char(n)
  end
  bucket_bytes = bucket_bytes + #record + #field + 64
  if n == 0 then return 'trace' end
  return 'chunk'
end
local function settle_cold(prefix, cap, age, now)
  if bucket_bytes > 0 then redis.call('HINCRBY', prefix .. 'cold:sizes', bucket, bucket_bytes) end
  local total = tonumber(redis.call('GET', prefix .. 'cold:bytes') or '0') + bucket_bytes
  local changed = bucket_bytes > 0
  while true do
    local oldest = redis.call('ZRANGE', prefix .. 'cold', 0, 0)[1]
    if not oldest or (total <= cap and now - tonumber(oldest) <= age) then break end
    count('cold_evicted', '', '', redis.call('HLEN', prefix .. 'cold:' .. oldest))
    redis.call('UNLINK', prefix .. 'cold:' .. oldest)
    total = math.max(0, total - tonumber(redis.call('HGET', prefix .. 'cold:sizes', oldest) or '0'))
    redis.call('HDEL', prefix .. 'cold:sizes', oldest)
    redis.call('ZREM', prefix .. 'cold', oldest)
    local following = redis.call('ZRANGE', prefix .. 'cold', 0, 0)[1]
    redis.call('SET', prefix .. 'cold:horizon', following or string.format('%.0f', now))
    changed = true
  end
  if changed then redis.call('SET', prefix .. 'cold:bytes', string.format('%.0f', total)) end
end
"""
"""Lua functions shared by the scripts: clock, counters, and the cold store's append and eviction."""

_EVICT: Final = Script(
    ALLOW_FULL_LUA
    + COLD_LUA
    + """
local prefix, cap, age = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
settle_cold(prefix, cap, age, now_ms())
redis.call('ZREMRANGEBYSCORE', prefix .. 'wanted', '-inf', now_ms())
write_counts(prefix)
return 1
"""
)

_GATHER_LUA: Final = """
local function gather(prefix, tid, now)
  local key, found = prefix .. 't:' .. tid, 0
  for _, name in ipairs(redis.call('ZREVRANGE', prefix .. 'cold', 0, -1)) do
    local cold, field, n = prefix .. 'cold:' .. name, tid, 0
    local record = redis.call('HGET', cold, field)
    while record do
      redis.call('HSET', key, string.sub(record, 1, 8), record)
      redis.call('HDEL', cold, field)
      local size = #record + #field + 64
      redis.call('HINCRBY', prefix .. 'cold:sizes', name, -size)
      redis.call('DECRBY', prefix .. 'cold:bytes', size)
      found, n = found + 1, n + 1
      if n > 255 then break end
      field = tid .. string.char(n)
      record = redis.call('HGET', cold, field)
    end
  end
  if found > 0 then
    local at = string.format('%.0f', now)
    redis.call('HSETNX', key, '@f', at)
    redis.call('HSET', key, '@l', at)
    redis.call('PERSIST', key)
    redis.call('ZADD', prefix .. 'due', at, tid)
  end
  return found
end
"""

_FORCE: Final = Script(
    COLD_LUA
    + _GATHER_LUA
    + """
local prefix, tid, patience = ARGV[1], ARGV[2], tonumber(ARGV[3])
local now, key = now_ms(), prefix .. 't:' .. ARGV[2]
local decided = redis.call('HGET', key, '@d')
if decided and string.sub(decided, 1, 1) == 's' then return 'evaluated' end
if not decided and redis.call('EXISTS', key) == 1 then
  redis.call('HSET', key, '@x', '1')
  return 'waiting'
end
if gather(prefix, tid, now) > 0 then
  redis.call('HDEL', key, '@d', '@c')
  redis.call('HSET', key, '@x', '1')
  return 'forced'
end
redis.call('ZADD', prefix .. 'wanted', string.format('%.0f', now + patience), tid)
if redis.call('EXISTS', prefix .. 'cold:horizon') == 1 then return 'evicted' end
return 'unknown'
"""
)

_RECALL: Final = Script(
    COLD_LUA
    + _GATHER_LUA
    + """
local found, now = {}, now_ms()
for i = 2, #ARGV do
  if gather(ARGV[1], ARGV[i], now) > 0 then found[#found + 1] = ARGV[i] end
end
return found
"""
)

WANTED_MS: Final = 3_600_000
"""How long feedback waits for a trace that has not come."""

Found = Literal["forced", "waiting", "evaluated", "evicted", "unknown"]
_FOUND: Final[dict[bytes, Found]] = {
    b"forced": "forced",
    b"waiting": "waiting",
    b"evaluated": "evaluated",
    b"evicted": "evicted",
    b"unknown": "unknown",
}


def force(link: Link, keys: Keys, trace_id: str) -> Found:
    """Have a trace evaluated whatever its draw says, with origin `forced`. Idempotent.

    Returns:
        `forced`: it was cold and is due now. `waiting`: it is not ready yet and will be evaluated.
        `evaluated`: it was sampled anyway. `evicted`: not found, and traces before the horizon are gone.
        `unknown`: not found and nothing was ever evicted. A trace of the last two kinds is forced when it
        comes within an hour (feedback may overtake its trace).

    Raises:
        redis.exceptions.RedisError: Redis does not answer.
    """
    return _FOUND[as_bytes(link.run(_FORCE, [keys.due], [keys.prefix, trace_id, WANTED_MS]))]


def recall(link: Link, keys: Keys, trace_ids: Sequence[str]) -> set[str]:
    """Bring the cold chunks of waiting traces back to them; return the traces that had some.

    Raises:
        redis.exceptions.RedisError: Redis does not answer.
    """
    found = as_list(link.run(_RECALL, [keys.due], [keys.prefix, *trace_ids])) if trace_ids else []
    return {as_bytes(trace_id).decode("ascii") for trace_id in found}


def evict(link: Link, keys: Keys, *, cap: int, hours: float) -> None:
    """Drop buckets beyond the byte cap or the age, and feedback that waited too long.

    Raises:
        redis.exceptions.RedisError: Redis does not answer.
    """
    link.run(_EVICT, [keys.cold], [keys.prefix, cap, round(hours * 3_600_000)])
