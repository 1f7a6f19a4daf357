"""The one place of the API that speaks to Redis: admission to the stream, and scripts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from aftercheck_schemas import EntryHeader, encode_entry
from aftercheck_schemas.wire import ADMIT_LUA, bytes_key, stream_key

SECONDS: Final = 2.0


class StreamFull(Exception):
    """Admission refused the entry: intake is behind. Nothing was written."""


class Stream:
    """A thread-safe client with short timeouts and no retries.

    Args:
        url: of Redis or Valkey.
        max_entries: admission cap of the stream's length.
        max_bytes: admission cap of its payload bytes.
    """

    def __init__(self, url: str, *, max_entries: int, max_bytes: int) -> None:
        self._client: Any = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
            url,
            client_name="aftercheck-api",
            protocol=2,
            socket_timeout=SECONDS,
            socket_connect_timeout=SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._limits = (str(max_entries), str(max_bytes))

    def put(self, tenant: str, entries: Sequence[tuple[EntryHeader, bytes]]) -> None:
        """Admit entries in one round trip; those admitted before a refusal stay, and intake counts a repeat once.

        Raises:
            StreamFull: at least one was refused.
            redis.RedisError: Redis does not answer.
        """
        pipe = self._client.pipeline(transaction=False)
        for header, payload in entries:
            fields = encode_entry(header, payload)
            size = str(len(payload))
            pipe.eval(ADMIT_LUA, 2, stream_key(tenant), bytes_key(tenant), *self._limits, size, *fields)
        if any(answer == b"full" for answer in cast("list[object]", pipe.execute())):
            raise StreamFull

    def again(self, tenant: str, fields: Mapping[str, str], payload: bytes) -> None:
        """Put an entry back that was taken off as a dead letter.

        Raises:
            StreamFull: it was refused.
            redis.RedisError: Redis does not answer.
        """
        flat: list[str | bytes] = [word for pair in fields.items() for word in pair]
        flat += ["p", payload] if payload else []
        keys = (stream_key(tenant), bytes_key(tenant))
        if self._client.eval(ADMIT_LUA, 2, *keys, *self._limits, str(len(payload)), *flat) == b"full":
            raise StreamFull

    def length(self, tenant: str) -> int:
        """Entries that nobody has read to the end.

        Raises:
            redis.RedisError: Redis does not answer.
        """
        return int(self._client.xlen(stream_key(tenant)))

    def run(self, lua: str, keys: Sequence[str], arguments: Sequence[str]) -> list[Any]:
        """Run a script that returns an array.

        Raises:
            redis.RedisError: Redis does not answer.
        """
        return cast("list[Any]", self._client.eval(lua, len(keys), *keys, *arguments))

    def ping(self) -> None:
        """Raise redis.RedisError when Redis does not answer."""
        self._client.ping()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
