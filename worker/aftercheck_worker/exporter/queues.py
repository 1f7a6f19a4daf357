"""Reads Redis for one refresh: the stream, the traces that are due, the Celery lists, the cold store.

The key names belong to `intake.keys`, which this layer may not import, and to `judge.canaries`, whose import would
cost a judge's; a test holds all to the same names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final, cast

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from aftercheck_schemas.wire import drops_key, stream_key
from aftercheck_worker.exporter.reading import Queue, QueueReading

CELERY_QUEUES: Final = ("check.high", "check.shadow", "judge")
TIMEOUT_SECONDS: Final = 2.0


def client(url: str) -> redis.Redis:
    """Client with short timeouts and no retries: the timer is the retry."""
    made: redis.Redis = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
        url,
        socket_timeout=TIMEOUT_SECONDS,
        socket_connect_timeout=TIMEOUT_SECONDS,
        retry=Retry(NoBackoff(), 0),
        client_name="aftercheck-exporter",
    )
    return made


def due_key(tenant: str) -> str:
    """Sorted set of traces by the time (ms) at which somebody should look at them."""
    return f"aftercheck:{{{tenant}}}:due"


def cold_key(tenant: str) -> str:
    """Sorted set of the buckets of unsampled traces, by the time (ms) at which they start."""
    return f"aftercheck:{{{tenant}}}:cold"


def canaries_key(tenant: str) -> str:
    """List of the newest outcomes of the judge's canaries, `1` or `0`."""
    return f"aftercheck:{{{tenant}}}:judge:canaries"


class Reader:
    """Reads both databases; the broker may live in another one than the stream."""

    def __init__(self, redis_url: str, broker_url: str, tenant: str) -> None:
        self._redis = client(redis_url)
        self._broker = self._redis if broker_url == redis_url else client(broker_url)
        self._tenant = tenant

    def close(self) -> None:
        """Close the connections."""
        for connection in {self._redis, self._broker}:
            with contextlib.suppress(redis.RedisError):
                connection.close()

    def read(self) -> QueueReading:
        """Read once.

        Raises:
            redis.RedisError: Redis does not answer.
        """
        seconds, micros = self._redis.time()
        now = seconds * 1000.0 + micros / 1000.0
        stream, due, cold = stream_key(self._tenant), due_key(self._tenant), cold_key(self._tenant)
        pipe = self._redis.pipeline(transaction=False)
        pipe.xlen(stream)
        pipe.xrange(stream, count=1)
        pipe.zcount(due, "-inf", now)
        pipe.zcard(due)
        pipe.zrange(due, 0, 0, withscores=True)
        pipe.zrange(cold, 0, 0, withscores=True)
        pipe.lrange(canaries_key(self._tenant), 0, -1)
        pipe.hgetall(drops_key(self._tenant))
        length, first, overdue, traces, earliest, coldest, outcomes, refused = pipe.execute()
        lists = self._celery()
        queues = (
            Queue(name="stream", depth=int(length), oldest=_stream_age(first, now)),
            Queue(name="due", depth=int(overdue), oldest=_age(earliest, now) if overdue else None),
            *(Queue(name=name, depth=depth) for name, depth in lists.items()),
        )
        mark = (_read_so_far(self._redis, stream), str(traces), str(sorted(lists.items())))
        return QueueReading(
            queues=queues,
            mark=mark,
            cold_horizon=_age(coldest, now),
            canaries=tuple(one == b"1" for one in outcomes),
            refused=_refused(refused),
        )

    def _celery(self) -> dict[str, int]:
        pipe = self._broker.pipeline(transaction=False)
        for name in CELERY_QUEUES:
            pipe.llen(name)
        return dict(zip(CELERY_QUEUES, cast("list[int]", pipe.execute()), strict=True))


def _refused(counted: dict[bytes, bytes]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for field, number in counted.items():
        app, _, reason = field.decode("utf-8", "replace").rpartition("\x1f")
        found[app, reason] = int(number)
    return found


def _stream_age(first: list[tuple[bytes, object]], now: float) -> float | None:
    if not first:
        return None
    born = int(first[0][0].split(b"-", 1)[0])
    return max(0.0, (now - born) / 1000)


def _age(scored: list[tuple[bytes, float]], now: float) -> float | None:
    return max(0.0, (now - scored[0][1]) / 1000) if scored else None


def _read_so_far(connection: redis.Redis, stream: str) -> str:
    """Position of the consumer group, "" while there is no stream."""
    try:
        groups = cast("list[Mapping[str, object]]", connection.xinfo_groups(stream))
    except redis.ResponseError:  # no such key
        return ""
    return ";".join(f"{group.get('last-delivered-id')!s}/{group.get('pending')!s}" for group in groups)
