"""What stands around a call: breaker and budget refuse early, and no tracer sees our own calls (O-46)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import httpx2 as httpx
import openai
import pytest
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aftercheck_worker.judge.breaker import IN_A_ROW
from aftercheck_worker.judge.budget import Reserved
from aftercheck_worker.judge.guard import Guarded, untraced
from aftercheck_worker.models.base import Completion, GeneratorError, ModelInfo

GOOD = Completion(text="{}", prompt_tokens=9, completion_tokens=2)


class Purse:
    """Remembers what was set aside and settled."""

    def __init__(self) -> None:
        self.reserved: list[Reserved] = []
        self.settled: list[Completion | None] = []

    async def reserve(self, prompt: int, completion: int) -> Reserved:
        self.reserved.append(Reserved(key="k", tokens=prompt + completion, micros=0))
        return self.reserved[-1]

    async def settle(self, reserved: Reserved, completion: Completion | None) -> None:
        self.settled.append(completion)


class Model:
    """A generator that does what it is told."""

    info = ModelInfo(name="m", revision="")

    def __init__(self, act: Callable[[], Awaitable[Completion]]) -> None:
        self._act = act
        self.calls = 0

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        self.calls += 1
        return await self._act()


async def good() -> Completion:
    return GOOD


def failing(reason: str) -> Callable[[], Awaitable[Completion]]:
    async def act() -> Completion:
        raise GeneratorError(reason)

    return act


def ask(guarded: Guarded) -> str:
    """`ok`, or the reason why there is no reply."""
    try:
        asyncio.run(guarded.generate("s" * 30, "u" * 60, schema=None, max_tokens=100))
    except GeneratorError as error:
        return error.reason
    return "ok"


def test_a_call_is_reserved_settled_and_counted() -> None:
    purse = Purse()
    guarded = Guarded(Model(good), purse)

    assert ask(guarded) == "ok"
    assert [one.tokens for one in purse.reserved] == [131]  # 90 characters at 3 per token, and the reply's limit
    assert purse.settled == [GOOD]
    assert guarded.spent.take() == (1, 9, 2)
    assert guarded.spent.take() == (0, 0, 0)


@pytest.mark.parametrize(("reason", "settled"), [("unavailable", [None]), ("refused", [None]), ("deadline", [])])
def test_a_failed_call_is_given_back_unless_it_may_still_be_paid_for(
    reason: str, settled: list[Completion | None]
) -> None:
    purse = Purse()

    assert ask(Guarded(Model(failing(reason)), purse)) == reason
    assert purse.settled == settled


@pytest.mark.req("F19")
@pytest.mark.parametrize(("reason", "after"), [("unavailable", "circuit_open"), ("refused", "refused")])
def test_only_an_endpoint_that_does_not_answer_opens_the_circuit(reason: str, after: str) -> None:
    model = Model(failing(reason))
    guarded = Guarded(model)
    for _ in range(IN_A_ROW):
        ask(guarded)

    assert ask(guarded) == after
    assert model.calls == IN_A_ROW + (after == "refused")


@pytest.mark.req("O-46")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the instrumentation's own
def test_an_instrumented_client_leaves_no_span_of_the_judges_calls() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = OpenAIInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        asyncio.run(_both())
    finally:
        instrumentor.uninstrument()

    spans = [span.name for span in exporter.get_finished_spans()]
    assert spans == ["openai.chat"], "one call of the app, none of the judge"


async def _both() -> None:
    """The same client: once as an app uses it, once behind the guard."""

    def reply(_: httpx.Request) -> httpx.Response:
        message = {"role": "assistant", "content": "{}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        return httpx.Response(200, content=json.dumps(body), headers={"content-type": "application/json"})

    transport = httpx.AsyncClient(transport=httpx.MockTransport(reply))
    client = openai.AsyncOpenAI(api_key="x", base_url="http://judge/v1", http_client=transport)

    async def act() -> Completion:
        await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        return GOOD

    await act()
    await Guarded(Model(act)).generate("s", "u", schema=None, max_tokens=1)
    with untraced():
        await act()
    await client.close()
