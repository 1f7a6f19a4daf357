"""Celery's settings, asserted as they are shipped and as they are refused."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import pytest

from aftercheck_worker import app, settings
from aftercheck_worker.errors import ConfigurationError

URLS = {"REDIS_URL": "redis://127.0.0.1:1/0"}


def configuration(**changes: str) -> dict[str, Any]:
    return app.configuration(settings.load(URLS | changes))


@pytest.mark.req("F01")
def test_shipped_settings_pass_the_rules() -> None:
    found = configuration()

    app.verify(found)
    assert all(found[name] for name in ("task_acks_late", "task_reject_on_worker_lost", "task_retry_on_worker_lost"))
    assert found["worker_pool_start_method"] == "spawn"
    assert (found["worker_concurrency"], found["worker_prefetch_multiplier"]) == (1, 1)
    assert found["worker_disable_prefetch"]
    assert found["worker_enable_remote_control"], "without it a lost broker goes unnoticed while a task runs (F07)"
    assert not found["worker_cancel_long_running_tasks_on_connection_loss"]
    transport = found["broker_transport_options"]
    assert transport["unacked_restore_interval"] * transport["unacked_restore_throttle"] <= 10
    assert transport["queue_order_strategy"] == "priority"


@pytest.mark.req("F04")
def test_a_lost_child_is_retried_without_an_eta() -> None:
    # in a process of its own: reading the registry fixes the app's configuration for good
    code = (
        "from aftercheck_worker import app, tasks; task = app.app.tasks[app.CHECK];"
        "print(task.default_retry_delay, task.max_retries)"
    )

    found = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **URLS}, capture_output=True, text=True, check=True
    )

    assert found.stdout.split() == ["0", "5"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("worker_pool_start_method", "fork"),
        ("task_acks_late", False),
        ("task_reject_on_worker_lost", False),
        ("accept_content", ["json", "pickle"]),
    ],
)
def test_settings_that_lose_work_are_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError):
        app.verify(configuration() | {name: value})


@pytest.mark.parametrize(("limit", "visible"), [("300", "600"), ("300", "599")])
def test_visibility_must_exceed_twice_the_time_limit(limit: str, visible: str) -> None:
    found = configuration(AFTERCHECK_TASK_TIME_LIMIT=limit, AFTERCHECK_VISIBILITY_TIMEOUT=visible)

    with pytest.raises(ConfigurationError, match="AFTERCHECK_VISIBILITY_TIMEOUT is"):
        app.verify(found)


def test_socket_timeout_must_exceed_the_blocking_pop() -> None:
    found = configuration()
    found["broker_transport_options"] |= {"socket_timeout": 1}

    with pytest.raises(ConfigurationError, match="socket_timeout"):
        app.verify(found)


def test_no_broker_is_one_line() -> None:
    with pytest.raises(ConfigurationError, match="There is no broker"):
        app.configuration(settings.load({}))


def test_a_broker_of_its_own_is_honoured() -> None:
    assert configuration(AFTERCHECK_BROKER_URL="redis://b/1")["broker_url"] == "redis://b/1"


def test_the_app_pickles_as_this_modules_app() -> None:
    assert pickle.loads(pickle.dumps(app.app)) is app.app


def test_messages_hold_at_most_32_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, list[int], str]] = []

    def send(name: str, args: list[list[int]], queue: str, **_: object) -> None:
        sent.append((name, args[0], queue))

    monkeypatch.setattr(app.app, "send_task", send)

    app.send_check(range(70))
    app.send_check([1], True)

    assert [(name, len(ids), queue) for name, ids, queue in sent] == [
        (app.CHECK, 32, "check.shadow"),
        (app.CHECK, 32, "check.shadow"),
        (app.CHECK, 6, "check.shadow"),
        (app.CHECK, 1, "check.high"),
    ]
    assert [number for _, ids, _ in sent[:3] for number in ids] == list(range(70))
