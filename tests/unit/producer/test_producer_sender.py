"""The circuit breaker, and what Redis' answers mean."""

from __future__ import annotations

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError, ResponseError

from aftercheck import _sender
from aftercheck._sender import Breaker


@pytest.mark.req("P1")
def test_the_pause_doubles_to_thirty_seconds_and_ends_with_a_success() -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0])
    pauses: list[float] = []
    for _ in range(8):
        assert breaker.allows()
        breaker.failed()
        assert not breaker.allows()
        before = now[0]
        while not breaker.allows():
            now[0] += 0.5
        pauses.append(now[0] - before)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert breaker.failing
    breaker.succeeded()
    assert breaker.allows()
    assert not breaker.failing


@pytest.mark.req("F08")
def test_answers() -> None:
    assert _sender._outcome(b"full") == "full"
    assert _sender._outcome(b"1-0") == "sent"
    assert _sender._outcome(OutOfMemoryError("command not allowed when used memory > 'maxmemory'.")) == "full"
    for error in (ResponseError("WRONGTYPE"), RedisConnectionError("gone")):
        with pytest.raises(type(error)):
            _sender._outcome(error)
