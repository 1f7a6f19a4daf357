"""The only part that talks to Redis. Runs in our own thread; short timeouts, no retries (trust notes, fact 1)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, Protocol, cast

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, OutOfMemoryError, RedisError
from redis.retry import Retry

from aftercheck_schemas.wire import ADMIT_LUA, DROPS_LUA, bytes_key, drops_field, drops_key, stream_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aftercheck._entries import Entry
    from aftercheck._settings import Settings

Outcome = Literal["sent", "full"]
SOCKET_TIMEOUT_S = 0.5
CONNECT_TIMEOUT_S = 0.3
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


class UnavailableError(Exception):
    """Redis cannot be used now; the entries may be tried again later."""


class _Pipeline(Protocol):
    def evalsha(self, sha: str, numkeys: int, *keys_and_args: object) -> object: ...
    def execute(self, raise_on_error: bool) -> list[object]: ...


class RedisSender:
    """Adds entries to the stream through the admission script, in pipelines."""

    def __init__(self, settings: Settings) -> None:
        self._keys = (stream_key(settings.tenant), bytes_key(settings.tenant))
        self._drops = drops_key(settings.tenant)
        self._app = settings.app
        self._caps = (settings.max_stream_entries, settings.max_stream_bytes)
        self._client = redis.Redis.from_url(
            settings.redis_url,
            socket_timeout=SOCKET_TIMEOUT_S,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            max_connections=1,
        )
        self._sha = ""
        self._answered = False

    def send(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Send a batch in one round trip.

        Returns:
            One outcome per entry: `sent`, or `full` where the stream's cap or Redis' memory refused it.

        Raises:
            UnavailableError: no answer, or one that says the set-up is wrong. Some entries may have arrived.
        """
        try:
            return self._send_over_fresh_connection(entries)
        except (RedisError, OSError, ValueError) as error:
            self._answered = False
            raise UnavailableError(_why(error)) from error

    def count_refused(self, reason: str, traces: int) -> None:
        """Leave word of traces that admission refused, where the exporter sees it. At least once.

        Raises:
            UnavailableError: no answer, or no memory; try again later.
        """
        try:
            self._client.eval(DROPS_LUA, 1, self._drops, drops_field(self._app, reason), str(traces))
        except (RedisError, OSError, ValueError) as error:
            raise UnavailableError(_why(error)) from error

    def _send_over_fresh_connection(self, entries: Sequence[Entry]) -> list[Outcome]:
        try:
            outcomes = self._send(entries)
        except RedisConnectionError:
            if not self._answered:
                raise
            self._client.connection_pool.disconnect()  # Redis closed an idle connection, or was restarted
            self._answered = False
            outcomes = self._send(entries)
        self._answered = True
        return outcomes

    def _send(self, entries: Sequence[Entry]) -> list[Outcome]:
        if not self._sha:
            self._load()
        answers = self._evaluate(entries)
        if any(isinstance(answer, NoScriptError) for answer in answers):
            self._load()  # Redis was restarted or flushed; all answers of the batch are the same
            again = [n for n, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
            for n, answer in zip(again, self._evaluate([entries[n] for n in again]), strict=True):
                answers[n] = answer
        return [_outcome(answer) for answer in answers]

    def _load(self) -> None:
        self._sha = self._client.script_load(ADMIT_LUA)

    def _evaluate(self, entries: Sequence[Entry]) -> list[object]:
        pipeline = cast("_Pipeline", self._client.pipeline(transaction=False))
        for entry in entries:
            pipeline.evalsha(self._sha, 2, *self._keys, *self._caps, entry.size, *entry.fields)
        return pipeline.execute(raise_on_error=False)


def _outcome(answer: object) -> Outcome:
    if isinstance(answer, OutOfMemoryError):
        return "full"
    if isinstance(answer, Exception):
        raise answer
    return "full" if answer in (b"full", "full") else "sent"


def _why(error: Exception) -> str:
    """One line for the operator; redis-py puts no payload and no password into these messages."""
    return f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else 'no detail'}"


class Breaker:
    """Stops trying after a failure, for 1 s, then 2 s, up to 30 s; one success closes it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause = 0.0
        self._until = 0.0

    @property
    def failing(self) -> bool:
        """The last attempt failed."""
        return self._pause > 0

    def allows(self) -> bool:
        """Whether an attempt may be made now."""
        return self._clock() >= self._until

    def failed(self) -> None:
        """Open, for twice as long as before."""
        self._pause = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, self._pause * 2))
        self._until = self._clock() + self._pause

    def succeeded(self) -> None:
        """Close."""
        self._pause = self._until = 0.0
