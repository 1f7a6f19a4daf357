"""Traces that wait in Redis: leased when they are due, and gone only after Postgres has committed.

A lease is a later due time, so a killed intake loses nothing: the trace is due again after it. Leases that nobody
gave back are counted; from the third on a trace is leased alone, so that whatever kills processes kills them alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

from aftercheck_worker.intake.cold import COLD_LUA
from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import ALLOW_FULL_LUA, Argument, Link, Script, as_bytes, as_int, as_list, as_pairs

SOLO_LEASES: Final = 2
"""From so many unfinished leases on a trace is leased alone."""
MAX_LEASES: Final = 5
"""So many unfinished leases make a trace a dead letter (`poison`)."""
LEASE_BYTES: Final = 16 * 1024 * 1024
"""A batch is closed when its stored bytes pass this."""

_LEASE: Final = Script(
    ALLOW_FULL_LUA
    + """
local prefix, limit, lease, budget = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local solo = tonumber(ARGV[5])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local until_ms = string.format('%.0f', now + lease)
local out, bytes = {}, 0
for _, tid in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, limit)) do
  local key = prefix .. 't:' .. tid
  local leases = tonumber(redis.call('HGET', key, '@n') or '0')
  if leases < solo or #out == 0 then
    local all = redis.call('HGETALL', key)
    if #all == 0 then
      redis.call('ZREM', KEYS[1], tid)
    else
      redis.call('HINCRBY', key, '@n', 1)
      redis.call('ZADD', KEYS[1], 'XX', until_ms, tid)
      out[#out + 1] = {tid, all}
      for i = 2, #all, 2 do bytes = bytes + #all[i] end
      if leases >= solo or bytes > budget then break end
    end
  end
end
return {string.format('%.0f', now), out}
"""
)

_SETTLE: Final = Script(
    ALLOW_FULL_LUA
    + COLD_LUA
    + """
local prefix, cap, age, keep = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local now, i, settled = now_ms(), 5, 0
local function release(key, tid, at)
  if at then redis.call('ZADD', KEYS[1], 'XX', at, tid) end
  if redis.call('HEXISTS', key, '@n') == 1 then redis.call('HINCRBY', key, '@n', -1) end
end
local function to_cold(key, tid)
  local all = redis.call('HGETALL', key)
  for f = 1, #all, 2 do
    if #all[f] == 8 then
      keep_cold(prefix, cap, now, tid, all[f + 1])
      redis.call('HDEL', key, all[f])
    end
  end
end
while i <= #ARGV do
  local op, tid, fields, at = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), ARGV[i + 3]
  local decision, counted, m = ARGV[i + 4], ARGV[i + 5], tonumber(ARGV[i + 6])
  local key = prefix .. 't:' .. tid
  if op == 'wait' then
    if redis.call('HLEN', key) ~= fields then at = nil end
    release(key, tid, at)
  elseif redis.call('HLEN', key) ~= fields then
    release(key, tid, nil)
  elseif redis.call('ZREM', KEYS[1], tid) == 1 then
    for c = i + 7, i + 6 + 2 * m, 2 do
      counts[ARGV[c]] = (counts[ARGV[c]] or 0) + tonumber(ARGV[c + 1])
    end
    if op == 'cold' then to_cold(key, tid) end
    local held = tonumber(redis.call('HGET', key, '@b') or '0')
    if redis.call('DECRBY', prefix .. 'held:bytes', held) < 0 then redis.call('SET', prefix .. 'held:bytes', '0') end
    redis.call('HDEL', key, '@n', '@x', '@b')
    redis.call('HSET', key, '@d', decision, '@c', counted)
    redis.call('PEXPIRE', key, keep)
    settled = settled + 1
  end
  i = i + 7 + 2 * m
end
settle_cold(prefix, cap, age, now)
write_counts(prefix)
return settled
"""
)


class Leased(msgspec.Struct, frozen=True, kw_only=True):
    """A due trace as it lies in Redis.

    Attributes:
        fields: how many fields its hash has under the lease; another number later means that chunks came.
        first, last: arrival of its first and newest chunk, server time in seconds.
        leases: unfinished leases before this one.
        decision: what was decided when it was read before, "" for a new trace.
        counted: digests that were counted then.
        forced: feedback asked for it. cut: chunks were refused because the trace grew too large.
        stored: packed records.
    """

    trace_id: str
    fields: int
    first: float
    last: float
    leases: int
    decision: str
    counted: frozenset[bytes]
    forced: bool
    cut: bool
    stored: tuple[bytes, ...]


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a leased trace.

    Attributes:
        action: `done` after the commit, `cold` for an unsampled one, `wait` gives the lease back until `until`.
        until: server time in seconds.
        decision: text kept for late chunks.
        counted: digests of all chunks that this reading has seen.
        counts: increments by counter name, added exactly once, when the trace leaves.
    """

    trace: Leased
    action: Literal["done", "cold", "wait"]
    until: float = 0.0
    decision: str = ""
    counted: bytes = b""
    counts: tuple[tuple[str, int], ...] = ()


class Buffer:
    """The waiting traces of a tenant."""

    def __init__(self, link: Link, keys: Keys, *, lease: float, cap: int, hours: float, linger: float) -> None:
        self._link, self._keys = link, keys
        self._lease_ms = round(lease * 1000)
        self._settle: tuple[Argument, ...] = (
            keys.prefix,
            cap,
            round(hours * 3_600_000),
            round(linger * 1000),
        )

    def lease(self, limit: int) -> tuple[float, list[Leased]]:
        """Take up to `limit` due traces for the lease time.

        Returns:
            The server's time in seconds, and the traces.

        Raises:
            redis.exceptions.RedisError: Redis does not answer.
        """
        arguments: list[Argument] = [self._keys.prefix, limit, self._lease_ms, LEASE_BYTES, SOLO_LEASES]
        now, traces = as_list(self._link.run(_LEASE, [self._keys.due], arguments))
        return as_int(now) / 1000, [_leased(as_list(item)) for item in as_list(traces)]

    def settle(self, settled: Iterable[Settled]) -> int:
        """Let traces go, or give them back. A trace that got chunks meanwhile stays and is read again.

        Returns:
            How many traces have left.

        Raises:
            redis.exceptions.RedisError: Redis does not answer. Repeating the call is safe.
        """
        arguments: list[Argument] = list(self._settle)
        for one in settled:
            arguments += _words(one)
        if len(arguments) == len(self._settle):
            return 0
        return as_int(self._link.run(_SETTLE, [self._keys.due], arguments))


def _words(one: Settled) -> Sequence[Argument]:
    flat: list[Argument] = [
        one.action,
        one.trace.trace_id,
        one.trace.fields,
        round(one.until * 1000),
        one.decision,
        one.counted,
        len(one.counts),
    ]
    for name, number in one.counts:
        flat += (name, number)
    return flat


def _leased(item: list[object]) -> Leased:
    fields = as_pairs(item[1])
    stored = tuple(value for name, value in fields.items() if len(name) == _DIGEST)
    counted = fields.get(b"@c", b"")
    return Leased(
        trace_id=as_bytes(item[0]).decode("ascii"),
        fields=len(fields) + (b"@n" not in fields),
        first=int(fields.get(b"@f", b"0")) / 1000,
        last=int(fields.get(b"@l", b"0")) / 1000,
        leases=int(fields.get(b"@n", b"0")),
        decision=fields.get(b"@d", b"").decode("ascii", "replace"),
        counted=frozenset(counted[at : at + _DIGEST] for at in range(0, len(counted), _DIGEST)),
        forced=b"@x" in fields,
        cut=b"@t" in fields,
        stored=stored,
    )


_DIGEST: Final = 8
