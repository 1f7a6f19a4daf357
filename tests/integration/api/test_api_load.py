"""Many callers at once hear 200, or 503 with Retry-After; and whatever the schema allows is never a server error."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import hypothesis
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import given

from aftercheck_worker.evaluators import Evaluator, assemble
from aftercheck_worker.stages.scoring import Policy
from aftercheck_worker.stages.verification import Findings, Item
from aftercheck_worker.testing import ScriptedVerifier

pytestmark = pytest.mark.integration

Client = Callable[..., TestClient]
BODY = {"agent_id": "shop", "input": "q", "output": "The plan costs 12 euro.", "context": ["It costs 12 euro."]}


class Slow(ScriptedVerifier):
    """Holds every check until it is let go, then takes the scripted way."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def verify(self, items: Sequence[Item]) -> list[Findings]:
        self.go.wait(20)
        return super().verify(items)


SLOW = Slow()


@pytest.fixture
def scripted() -> Evaluator:
    return assemble("slow", SLOW, policy=Policy())


@pytest.mark.req("R32", "S24")
def test_fifty_callers_get_an_answer_or_a_time_to_retry(client: Client) -> None:
    SLOW.go.clear()
    app = client("check", api_max_checks=8, api_check_seconds=20)
    refused = threading.Semaphore(0)

    def call(_: int) -> tuple[int, bool]:
        reply = app.post("/monitor/check", json=BODY)
        if reply.status_code == 503:
            refused.release()
        return reply.status_code, "retry-after" in reply.headers

    with ThreadPoolExecutor(50) as callers:
        futures = [callers.submit(call, n) for n in range(50)]
        for _ in range(42):
            assert refused.acquire(timeout=30)
        SLOW.go.set()
        found = Counter(future.result(30) for future in futures)
    assert found == {(200, False): 8, (503, True): 42}
    assert app.post("/monitor/check", json=BODY).status_code == 200


@pytest.mark.req("R32")
def test_a_check_past_its_deadline_is_503_and_its_place_is_free_again(client: Client) -> None:
    SLOW.go.clear()
    app = client("check", api_max_checks=1, api_check_seconds=0.1)
    late = app.post("/monitor/check", json=BODY)
    assert (late.status_code, late.headers["Retry-After"]) == (503, "2")
    assert app.post("/monitor/check", json=BODY).status_code == 503  # the thread still holds the only place
    SLOW.go.set()
    until = time.monotonic() + 20
    while app.post("/monitor/check", json=BODY).status_code != 200:
        assert time.monotonic() < until


def test_nothing_that_the_schema_allows_is_a_server_error(client: Client) -> None:
    SLOW.go.set()
    app = client(api_rate_per_minute=1_000_000)
    schema: Any = schemathesis.openapi.from_asgi("/openapi.json", app.app, headers={"Host": "127.0.0.1"})
    tried: Counter[str] = Counter()
    for found in schema.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @hypothesis.settings(
            max_examples=40,
            deadline=None,
            database=None,
            suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much],
        )
        def attack(case: Any) -> None:
            reply = case.call(headers={"Host": "127.0.0.1"})
            tried[case.operation.label] += 1
            assert reply.status_code < 500, (case.operation.label, reply.text)

        attack()
    assert len(tried) >= 9
    assert min(tried.values()) >= 1
