"""The one place that speaks redis-py: raw replies, no hidden retries, scripts by digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final, cast

import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError
from redis.retry import Retry

BLOCK_MS: Final = 500
"""Longest blocking read. redis-py 8 re-sends a blocking read that outlives its socket timeout, so stay far below."""
SOCKET_TIMEOUT_S: Final = 8.0

Argument = str | bytes | int | float
LinkError: Final = RedisError

ALLOW_FULL_LUA: Final = "redis.call('DEL', KEYS[1] .. ':nothing')\n"
"""First line of scripts that free memory in the end: after one write that needs none, a full Redis lets them go on.

(Redis refuses a memory-taking command only while a script has not written yet. XACK in the step does the same.)
"""


class Script:
    """Lua text with its digest."""

    def __init__(self, lua: str) -> None:
        self.lua = lua
        self.sha = hashlib.sha1(lua.encode(), usedforsecurity=False).hexdigest()


class Link:
    """A connection to Redis that returns what the server sent: bytes, int, None and lists of these.

    redis-py's own retry is off: its defaults turn an idle blocking read into a minute of silence, and a script
    may only be repeated by code that knows it is idempotent.
    """

    def __init__(self, url: str, *, name: str = "aftercheck-intake") -> None:
        self._client = redis.Redis.from_url(
            url,
            client_name=name,
            protocol=2,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=2.0,
            socket_keepalive=True,
            health_check_interval=0,
            retry=Retry(NoBackoff(), 0),
            single_connection_client=False,
        )
        self._client.response_callbacks.clear()
        self._execute = cast("Callable[..., object]", self._client.execute_command)  # pyright: ignore[reportUnknownMemberType]

    def call(self, *words: Argument) -> object:
        """Send one command.

        Raises:
            redis.exceptions.RedisError: the server refused or did not answer.
        """
        return self._execute(*words)

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Argument]) -> object:
        """Run a script, loading it where the server does not know it (after a restart).

        Raises:
            redis.exceptions.RedisError: as `call`.
        """
        try:
            return self.call("EVALSHA", script.sha, len(keys), *keys, *arguments)
        except NoScriptError:
            return self.call("EVAL", script.lua, len(keys), *keys, *arguments)

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._client.close()


def as_list(reply: object) -> list[object]:
    """Narrow a reply that must be an array."""
    if not isinstance(reply, list):
        raise TypeError(f"Redis answered {type(reply).__name__} where an array was expected")
    return cast("list[object]", reply)


def as_bytes(reply: object) -> bytes:
    """Narrow a reply that must be a string."""
    if not isinstance(reply, bytes):
        raise TypeError(f"Redis answered {type(reply).__name__} where a string was expected")
    return reply


def as_int(reply: object) -> int:
    """Read a number, sent as an integer or as text; 0 for nothing."""
    if reply is None:
        return 0
    if isinstance(reply, (int, bytes)):
        return int(reply)
    raise TypeError(f"Redis answered {type(reply).__name__} where a number was expected")


def as_pairs(reply: object) -> dict[bytes, bytes]:
    """Read a flat list of names and values."""
    flat = as_list(reply)
    return dict(zip(map(as_bytes, flat[::2]), map(as_bytes, flat[1::2]), strict=True))
