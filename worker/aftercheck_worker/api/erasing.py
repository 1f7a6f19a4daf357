"""Erasure of what Redis holds of a trace: unread entries, the waiting trace, cold chunks (S35)."""

from __future__ import annotations

from typing import Final

from aftercheck_schemas.wire import bytes_key, stream_key
from aftercheck_worker.api.stream import Stream

_HELD: Final = """
local prefix, tid, found = ARGV[1], ARGV[2], 0
local key = prefix .. 't:' .. tid
if redis.call('EXISTS', key) == 1 then
  local held = tonumber(redis.call('HGET', key, '@b') or '0')
  if redis.call('DECRBY', prefix .. 'held:bytes', held) < 0 then redis.call('SET', prefix .. 'held:bytes', '0') end
  found = found + redis.call('DEL', key)
end
redis.call('ZREM', prefix .. 'due', tid)
redis.call('ZREM', prefix .. 'wanted', tid)
local cold = 0
for _, name in ipairs(redis.call('ZRANGE', prefix .. 'cold', 0, -1)) do
  local bucket, field, n = prefix .. 'cold:' .. name, tid, 0
  local record = redis.call('HGET', bucket, field)
  while record do
    local size = #record + #field + 64
    redis.call('HDEL', bucket, field)
    redis.call('HINCRBY', prefix .. 'cold:sizes', name, -size)
    redis.call('DECRBY', prefix .. 'cold:bytes', size)
    cold, n = cold + 1, n + 1
    if n > 255 then break end
    field = tid .. string.char(n)
    record = redis.call('HGET', bucket, field)
  end
end
return {found, cold}
"""
_ENTRIES: Final = """
local found, last, freed = 0, '', 0
local page = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', 500)
for _, entry in ipairs(page) do
  last = entry[1]
  local tid, payload = '', 0
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'tid' then tid = string.lower(entry[2][i + 1]) end
    if entry[2][i] == 'p' then payload = #entry[2][i + 1] end
  end
  if tid == ARGV[2] then
    redis.pcall('XACK', KEYS[1], 'intake', last)
    redis.call('XDEL', KEYS[1], last)
    freed, found = freed + payload, found + 1
  end
end
if freed > 0 then redis.call('DECRBY', KEYS[2], freed) end
if #page < 500 then last = '' end
return {found, last}
"""
"""One page of the stream: the payloads stay on the server, and no script runs long."""


def forget(stream: Stream, tenant: str, trace_id: str) -> dict[str, int]:
    """Remove a trace from Redis; return how many entries, waiting traces and cold chunks went.

    Raises:
        redis.RedisError: Redis does not answer; call again.
    """
    entries, start = 0, "-"
    while start:
        found, last = stream.run(_ENTRIES, [stream_key(tenant), bytes_key(tenant)], [start, trace_id])
        entries += int(found)
        start = f"({last.decode()}" if last else ""
    prefix = f"aftercheck:{{{tenant}}}:"
    waiting, cold = stream.run(_HELD, [f"{prefix}due"], [prefix, trace_id])
    return {"stream_entries": entries, "waiting_traces": int(waiting), "cold_chunks": int(cold)}
