"""The tenant's stream: read as one consumer of a group, and taken off it in one atomic step.

The step is a script and not a MULTI, because it must depend on XACK: only the intake whose XACK removes an entry
from the pending list stores and counts it. So a repeated step, or two intakes that hold the same entry after a
claim, change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec
from redis.exceptions import OutOfMemoryError, ResponseError

from aftercheck_worker.intake.cold import COLD_LUA
from aftercheck_worker.intake.keys import GROUP, Keys
from aftercheck_worker.intake.link import (
    BLOCK_MS,
    Argument,
    Link,
    Script,
    as_bytes,
    as_int,
    as_list,
    as_pairs,
)

READ_COUNT: Final = 1000
READ_BYTES: Final = 32 * 1024 * 1024
MAX_DELIVERIES: Final = 3
"""An entry delivered so often without an end is a dead letter (`poison`)."""
MAX_TRACE_BYTES: Final = 32 * 1024 * 1024
"""Compressed bytes of one waiting trace; more are refused and counted, and the trace is incomplete."""

_STEP: Final = Script(
    COLD_LUA
    + """
local stream, due, prefix, group = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local cap, age, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local now = now_ms()
local at = string.format('%.0f', now)
local wanted = redis.call('ZCARD', prefix .. 'wanted') > 0
local function cold(tid, record, app)
  local kept = keep_cold(prefix, cap, now, tid, record)
  if kept == 'duplicate' then count('entries', app, 'duplicate') return end
  count('entries', app, 'unsampled')
  if kept == 'trace' then count('unsampled', app, '') end
  if kept == 'evicted' then count('cold_evicted', '', '') end
end
local function hold(tid, record, app, wait, size)
  local key, digest = prefix .. 't:' .. tid, string.sub(record, 1, 8)
  if redis.call('HSETNX', key, '@f', at) == 1 then
    redis.call('HSET', key, '@l', at, '@b', size, digest, record)
  else
    if redis.call('HEXISTS', key, digest) == 1 then count('entries', app, 'duplicate') return end
    local old = redis.call('HMGET', key, '@d', '@c', '@b')
    if old[1] and string.sub(old[1], 1, 1) == 'u' then return cold(tid, record, app) end
    if old[2] then
      for c = 1, #old[2], 8 do
        if string.sub(old[2], c, c + 7) == digest then count('entries', app, 'duplicate') return end
      end
    end
    if tonumber(old[3] or '0') + size > most then
      redis.call('HSET', key, '@t', '1')
      count('entries', app, 'rejected')
      count('rejected', app, 'too_large')
      return
    end
    redis.call('HINCRBY', key, '@b', size)
    redis.call('HSET', key, '@l', at, digest, record)
    if old[1] then redis.call('PERSIST', key) end
  end
  redis.call('ZADD', due, string.format('%.0f', now + wait), tid)
  redis.call('INCRBY', prefix .. 'held:bytes', size)
  count('entries', app, 'held')
end
local freed, gone, i = 0, {}, 6
while i <= #ARGV do
  local id, op, app, tid, size, arg, record, lost = unpack(ARGV, i, i + 7)
  i = i + 8
  if redis.call('XACK', stream, group, id) == 1 then
    gone[#gone + 1] = id
    freed = freed + tonumber(size)
    count('received', app, '')
    if lost ~= '' then count('dropped', app, lost) end
    if wanted and (op == 'cold' or op == 'hold') and redis.call('ZREM', prefix .. 'wanted', tid) == 1 then
      op = 'hold'
      redis.call('HSET', prefix .. 't:' .. tid, '@x', '1')
    end
    if op == 'hold' then hold(tid, record, app, tonumber(arg), tonumber(size))
    elseif op == 'cold' then cold(tid, record, app)
    else
      count('entries', app, op)
      if arg ~= '' then count(op, app, arg) end
    end
  end
end
for first = 1, #gone, 500 do redis.call('XDEL', stream, unpack(gone, first, math.min(first + 499, #gone))) end
if freed > 0 and redis.call('DECRBY', KEYS[3], freed) < 0 then redis.call('SET', KEYS[3], '0') end
settle_cold(prefix, cap, age, now)
write_counts(prefix)
local length = redis.call('XLEN', stream)
local waiting, held = redis.call('ZCARD', due), tonumber(redis.call('GET', prefix .. 'held:bytes') or '0')
return {#gone, length, tonumber(redis.call('GET', KEYS[3]) or '0'), waiting, held}
"""
)


class Entry(msgspec.Struct, frozen=True):
    """One entry as read. `deliveries` counts this reading, too."""

    id: bytes
    fields: dict[bytes, bytes]
    deliveries: int = 1


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """What a step does with one entry.

    Attributes:
        action: `hold` for its trace, `cold` store, or take it off: `rejected`, `feedback`.
        size: payload bytes, given back to the admission counter.
        argument: for `hold` the milliseconds until the trace is due, otherwise the key of the counter named like
            the action ("" for none).
        dropped: why the producer lost this trace, for an entry that only says so.
        record: packed entry for `hold` and `cold`.
    """

    entry_id: bytes
    action: Literal["hold", "cold", "rejected", "feedback"]
    app: str
    trace_id: str
    size: int
    argument: str | int = ""
    record: bytes = b""
    dropped: str = ""


class Stand(msgspec.Struct, frozen=True):
    """How the tenant stands after a step.

    Attributes:
        moved: entries that the step took off. entries, bytes: what is left on the stream.
        due: traces that wait. held: payload bytes of these.
    """

    moved: int = 0
    entries: int = 0
    bytes: int = 0
    due: int = 0
    held: int = 0


class Stream:
    """One consumer of the tenant's stream."""

    def __init__(self, link: Link, keys: Keys, consumer: str, *, cap: int, hours: float) -> None:
        self._link, self._keys, self._consumer = link, keys, consumer
        self._step: tuple[Argument, ...] = (keys.prefix, GROUP, cap, round(hours * 3_600_000), MAX_TRACE_BYTES)
        self._mean_bytes = READ_BYTES // 100

    def ensure_group(self) -> None:
        """Create stream and group, from the first entry on. Does nothing where they exist.

        Raises:
            redis.exceptions.RedisError: Redis does not answer.
        """
        try:
            self._link.call("XGROUP", "CREATE", self._keys.stream, GROUP, "0", "MKSTREAM")
        except OutOfMemoryError:
            return  # said before Redis looks whether the group exists; if it does not, reading will say so
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def read(self, block_ms: int = BLOCK_MS) -> list[Entry]:
        """Read new entries, at most about `READ_BYTES`. Waits up to `block_ms`; 0 does not wait.

        Raises:
            redis.exceptions.RedisError: Redis does not answer, or the group is gone (`NOGROUP`).
        """
        count = min(READ_COUNT, max(1, READ_BYTES // max(1, self._mean_bytes)))
        words: list[Argument] = ["XREADGROUP", "GROUP", GROUP, self._consumer, "COUNT", count]
        if block_ms:
            words += ["BLOCK", block_ms]
        reply = self._link.call(*words, "STREAMS", self._keys.stream, ">")
        if reply is None:
            return []
        return [_entry(item) for item in as_list(as_list(as_list(reply)[0])[1])]

    def claim(self, idle_ms: int) -> list[Entry]:
        """Take over entries whose consumer died before ending them.

        Like XAUTOCLAIM, but an entry that was delivered before and again is claimed alone, so that the one that
        kills processes is not in company when it is counted.

        Raises:
            redis.exceptions.RedisError: as `read`.
        """
        pending = self._pending("IDLE", idle_ms, "-", "+", READ_COUNT)
        fresh = [(entry_id, times) for entry_id, times in pending if times <= 1]
        return self._claim(fresh or pending[:1], idle_ms)

    def own(self) -> list[Entry]:
        """Entries that were delivered to us in a reply that got lost. Being alive, we do not count it as a try.

        Raises:
            redis.exceptions.RedisError: as `read`.
        """
        pending = self._pending("-", "+", READ_COUNT, self._consumer)
        return self._claim([(entry_id, max(0, times - 1)) for entry_id, times in pending], 0)

    def postpone(self, entries: Sequence[Entry]) -> None:
        """Leave entries pending as if nobody had tried them; `claim` finds them again.

        Raises:
            redis.exceptions.RedisError: as `read`.
        """
        if entries:
            ids = [entry.id for entry in entries]
            words: list[Argument] = ["XCLAIM", self._keys.stream, GROUP, self._consumer, 0, *ids]
            self._link.call(*words, "RETRYCOUNT", 0, "JUSTID")

    def step(self, moves: Iterable[Move]) -> Stand:
        """Take entries off the stream and put each where it belongs, atomically. Repeating a step is safe.

        Raises:
            redis.exceptions.RedisError: as `read`.
        """
        arguments: list[Argument] = list(self._step)
        for move in moves:
            arguments += (
                move.entry_id,
                move.action,
                move.app,
                move.trace_id,
                move.size,
                move.argument,
                move.record,
                move.dropped,
            )
        reply = as_list(self._link.run(_STEP, [self._keys.stream, self._keys.due, self._keys.bytes], arguments))
        stand = Stand(*(as_int(number) for number in reply))
        if stand.entries:
            self._mean_bytes = stand.bytes // stand.entries
        return stand

    def leave(self) -> None:
        """Remove this consumer, unless entries are pending under its name (others will claim them).

        Raises:
            redis.exceptions.RedisError: as `read`.
        """
        if not self._pending("-", "+", 1, self._consumer):
            self._link.call("XGROUP", "DELCONSUMER", self._keys.stream, GROUP, self._consumer)

    def _pending(self, *words: Argument) -> list[tuple[bytes, int]]:
        rows = as_list(self._link.call("XPENDING", self._keys.stream, GROUP, *words))
        return [(as_bytes(as_list(row)[0]), as_int(as_list(row)[3])) for row in rows]

    def _claim(self, pending: Sequence[tuple[bytes, int]], idle_ms: int) -> list[Entry]:
        claimed: list[Entry] = []
        for times in sorted({times for _, times in pending}):
            ids = [entry_id for entry_id, earlier in pending if earlier == times]
            words: list[Argument] = ["XCLAIM", self._keys.stream, GROUP, self._consumer, idle_ms, *ids]
            reply = as_list(self._link.call(*words, "RETRYCOUNT", times + 1))
            claimed += [_entry(item, times + 1) for item in reply if item is not None]
        return claimed


def _entry(item: object, deliveries: int = 1) -> Entry:
    entry_id, fields = as_list(item)
    return Entry(as_bytes(entry_id), as_pairs(fields or []), deliveries)
