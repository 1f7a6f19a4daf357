"""The Celery application and the one way to send work to it. Only this file and `tasks.py` know Celery.

A message holds at most 32 evaluation ids and nothing else: app data never travels through Celery, because one
malformed message kills a Celery worker. Celery and Redis may lose or repeat messages; Postgres decides.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

import redis
from celery import Celery, current_task, platforms, signals
from celery.exceptions import Reject
from kombu.entity import Queue
from kombu.exceptions import OperationalError
from redis.backoff import NoBackoff
from redis.retry import Retry

from aftercheck_worker.errors import ConfigurationError, DependencyUnavailable
from aftercheck_worker.settings import Settings, current

logger = logging.getLogger(__name__)

QUEUE_HIGH: Final = "check.high"
QUEUE_SHADOW: Final = "check.shadow"
QUEUE_JUDGE: Final = "judge"
CHECK: Final = "aftercheck.check"
JUDGE: Final = "aftercheck.judge"
MAX_IDS: Final = 32
BRPOP_SECONDS: Final = 1
"""kombu's blocking pop; `socket_timeout` must be longer, or every idle wait is an error."""
MAX_CLOCK_SKEW_SECONDS: Final = 5.0
"""kombu ages unacknowledged messages by the client's clock: a skewed worker would steal work in progress (F24)."""

_F = TypeVar("_F", bound=Callable[..., None])

Requeue = Reject
"""Raised by a task (with `requeue=True`) to hand its message back to the queue."""


class _App(Celery):  # type: ignore[misc] # Celery is untyped
    """Pickles as "the app of this module": a spawned pool child then has the same configuration and tasks."""

    def __reduce__(self) -> Any:
        return _installed, ()


def configuration(settings: Settings) -> dict[str, object]:
    """Return the Celery settings to run with (notes on operations, 2.8).

    Raises:
        ConfigurationError: neither AFTERCHECK_BROKER_URL nor REDIS_URL is set.
    """
    url = settings.broker_url or settings.redis_url
    if url is None:
        raise ConfigurationError(
            "There is no broker", why="REDIS_URL is not set", fix="set REDIS_URL, or start with `aftercheck up`"
        )
    return {
        "broker_url": url.get_secret_value(),
        "broker_transport_options": {
            "visibility_timeout": settings.visibility_timeout,
            "unacked_restore_interval": 5,
            "unacked_restore_throttle": 1,
            "socket_keepalive": True,
            "socket_connect_timeout": 3,
            "socket_timeout": 30,
            "health_check_interval": 10,
            "queue_order_strategy": "priority",
        },
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "task_queues": tuple(
            Queue(name, routing_key=name)  # type: ignore[no-untyped-call]
            for name in (QUEUE_HIGH, QUEUE_SHADOW, QUEUE_JUDGE)
        ),
        "task_default_queue": QUEUE_SHADOW,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_retry_on_worker_lost": True,
        "task_time_limit": settings.task_time_limit,
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_prefetch_multiplier": 1,
        "worker_disable_prefetch": True,
        "worker_pool": "prefork",
        "worker_concurrency": 1,
        "worker_pool_start_method": "spawn",
        "worker_proc_alive_timeout": 120.0,  # a child loads its models first
        "worker_max_memory_per_child": settings.max_memory_mb * 1024,
        "worker_soft_shutdown_timeout": 30.0,
        "worker_send_task_events": False,
        # Its subscription is the one connection that is always read. Without it a worker whose acknowledgement failed
        # while Redis restarted holds its only prefetch slot for ever and never notices (F07).
        "worker_enable_remote_control": True,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
    }


def verify(conf: Mapping[str, Any]) -> None:
    """Refuse settings under which Celery loses or repeats work.

    Raises:
        ConfigurationError: one of the rules of the notes on operations, 2.8, is broken.
    """
    transport = cast("Mapping[str, Any]", conf["broker_transport_options"])
    limit, visible = conf["task_time_limit"], transport["visibility_timeout"]
    rules = (
        (
            visible > 2 * limit,
            f"AFTERCHECK_VISIBILITY_TIMEOUT is {visible} s, not above twice AFTERCHECK_TASK_TIME_LIMIT ({limit} s)",
            "a running task would be handed out again",
        ),
        (conf["worker_pool_start_method"] == "spawn", "The pool does not spawn", "models do not survive a fork"),
        (
            bool(conf["task_acks_late"]) and bool(conf["task_reject_on_worker_lost"]),
            "Messages are acknowledged early",
            "a killed worker would lose them",
        ),
        (
            transport["socket_timeout"] > BRPOP_SECONDS,
            f"socket_timeout is not above the blocking pop of {BRPOP_SECONDS} s",
            "every idle wait would be an error",
        ),
        (list(conf["accept_content"]) == ["json"], "Messages other than JSON are accepted", "they may carry code"),
    )
    for holds, what, why in rules:
        if not holds:
            raise ConfigurationError(what, why=why, fix="see `aftercheck config show`")


def verify_broker(settings: Settings, *, allow_eviction: bool = False) -> None:
    """Refuse a broker that may delete queues, or whose clock is not ours (F09, F24).

    An unreachable broker is no reason to refuse: the worker waits for it.

    Raises:
        ConfigurationError: `maxmemory-policy` is allkeys-*, or the clocks differ by more than 5 s.
    """
    url = settings.broker_url or settings.redis_url
    if url is None:
        return
    client = redis.Redis.from_url(
        url.get_secret_value(), socket_timeout=3, socket_connect_timeout=3, retry=Retry(NoBackoff(), 0)
    )
    try:
        _verify_policy(client, allow_eviction=allow_eviction)
        seconds, micros = client.time()
    except redis.RedisError as error:
        logger.warning("The broker could not be examined: %s", error, extra={"action": "broker_unexamined"})
        return
    finally:
        client.close()
    skew = time.time() - (seconds + micros / 1e6)
    if abs(skew) > MAX_CLOCK_SKEW_SECONDS:
        raise ConfigurationError(
            f"This machine's clock differs from Redis' by {skew:.1f} s",
            why="unacknowledged messages are aged by the client's clock",
            fix="synchronise the clocks",
        )


def _verify_policy(client: redis.Redis, *, allow_eviction: bool) -> None:
    policy = ""
    with contextlib.suppress(redis.ResponseError):  # CONFIG is forbidden on managed services
        policy = str(cast("dict[str, str]", client.config_get("maxmemory-policy")).get("maxmemory-policy", ""))
    if policy.startswith("allkeys-") and not allow_eviction:
        raise ConfigurationError(
            f"Redis has maxmemory-policy {policy}",
            why="it would delete queues and traces when memory is short",
            fix="set it to noeviction, or start with --allow-eviction",
        )


def send_check(ids: Sequence[int], high: bool = False) -> None:
    """Send the ids to the workers, at most 32 per message.

    Raises:
        DependencyUnavailable: the broker does not take the message. Nothing is lost: the rows stay pending in
            Postgres and the reconciler sends them again.
    """
    _send(CHECK, ids, QUEUE_HIGH if high else QUEUE_SHADOW)


def send_judge(ids: Sequence[int]) -> None:
    """Send ids of answers in the state `judging` to the judge, at most 32 per message.

    Raises:
        DependencyUnavailable: the broker does not take the message; at their deadline the verifier's word is final.
    """
    _send(JUDGE, ids, QUEUE_JUDGE)


def _send(name: str, ids: Sequence[int], queue: str) -> None:
    for start in range(0, len(ids), MAX_IDS):
        try:
            app.send_task(name, args=[list(ids[start : start + MAX_IDS])], queue=queue, retry=False)
        except (OperationalError, redis.RedisError, OSError) as error:
            raise DependencyUnavailable(
                "The broker took no message", why=str(error)[:200], fix="check REDIS_URL and that Redis is up"
            ) from error


def task(name: str) -> Callable[[_F], _F]:
    """Register a task under `name`; the decorated function stays callable as it is."""

    def register(function: _F) -> _F:
        # A lost child is retried at once: Celery's default is an ETA 180 s away. Attempts are counted in Postgres;
        # after `max_retries` the message is gone and the reconciler sends the answers again.
        app.task(name=name, default_retry_delay=0, max_retries=5)(function)
        return function

    return register


def came_high() -> bool:
    """Did the message of the running task come by `check.high`?"""
    info = cast("dict[str, Any]", getattr(current_task.request, "delivery_info", None) or {})
    return info.get("routing_key") == QUEUE_HIGH


def on_child_start(function: Callable[[], None]) -> Callable[[], None]:
    """Call `function` in every spawned pool child before its first task."""

    def call(**_: object) -> None:
        function()

    signals.worker_process_init.connect(call, weak=False)
    return function


def on_logging_setup(function: Callable[[], None]) -> Callable[[], None]:
    """Let `function` configure logging instead of Celery, in the worker and in its children."""

    def call(**_: object) -> None:
        function()

    signals.setup_logging.connect(call, weak=False)
    return function


def work(settings: Settings, queues: Sequence[str] = (QUEUE_HIGH, QUEUE_SHADOW)) -> None:
    """Run a Celery worker in this process until SIGTERM. Models are loaded in its spawned child, never here.

    Args:
        settings: of this process.
        queues: what it takes. Checks and the judge have a process each: a judge waits, a check computes.

    Raises:
        ConfigurationError: the settings lose work, see `verify`.
    """
    verify(cast("Mapping[str, Any]", app.conf))
    logger.info("Celery worker starts", extra={"action": "worker_start", "evaluator": settings.evaluator})
    app.worker_main(
        [
            "--quiet",  # no banner
            "worker",
            "--queues",
            ",".join(queues),
            "--hostname",
            f"aftercheck-{os.getpid()}@%h",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )


def follow_parent() -> None:
    """Ask the kernel for a SIGTERM when the supervisor dies, so that no child outlives it (Linux only)."""
    parent = os.getppid()
    platforms.set_pdeathsig("SIGTERM")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def _installed() -> Celery:
    return app


app = _App("aftercheck", include=["aftercheck_worker.tasks"], set_as_current=True)
app.add_defaults(lambda: configuration(current()))
