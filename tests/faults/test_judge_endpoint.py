"""The generator against an endpoint that misbehaves: a named reason inside the deadline, whatever comes (F18-F20)."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import msgspec
import pytest

from aftercheck_worker.models.base import Completion, GeneratorError
from aftercheck_worker.models.openai_compatible import Endpoint, OpenAICompatible, probe
from tests.faults.judge_server import Reply, serving

pytestmark = pytest.mark.faults


def endpoint(url: str, **changes: object) -> Endpoint:
    base = Endpoint(url=url, model="m", total=2.0, connect=0.5, mode="plain")
    return msgspec.structs.replace(base, **changes)


def ask(where: Endpoint) -> Completion:
    async def once() -> Completion:
        model = OpenAICompatible(where, jitter=random.Random(1))
        try:
            return await model.generate("s", "u", schema=None, max_tokens=5)
        finally:
            await model.close()

    return asyncio.run(once())


def reason(where: Endpoint) -> str:
    with pytest.raises(GeneratorError) as caught:
        ask(where)
    return caught.value.reason


def outcome(where: Endpoint) -> str:
    """The reply's text, or the reason why there is none."""
    try:
        return ask(where).text
    except GeneratorError as error:
        return error.reason


def test_a_reply() -> None:
    with serving(lambda n, request: Reply(content="hello")) as server:
        assert ask(endpoint(server.url)) == Completion(text="hello", prompt_tokens=7, completion_tokens=3)


def test_a_reply_cut_at_its_limit_says_so() -> None:
    with serving(lambda n, request: Reply(content="hel", finish_reason="length")) as server:
        assert ask(endpoint(server.url)).cut


@pytest.mark.req("F18")
def test_a_short_retry_after_is_waited_for() -> None:
    def script(number: int, request: dict[str, object]) -> Reply:
        return Reply(status=429, headers={"retry-after": "0.1"}) if number == 0 else Reply(content="ok")

    with serving(script) as server:
        assert ask(endpoint(server.url)).text == "ok"
        assert len(server.requests) == 2


@pytest.mark.req("F18")
def test_a_long_retry_after_gives_the_slot_back() -> None:
    with serving(lambda n, request: Reply(status=429, headers={"retry-after": "60"})) as server:
        with pytest.raises(GeneratorError) as caught:
            ask(endpoint(server.url))
        assert (caught.value.reason, caught.value.retry_after, len(server.requests)) == ("rate_limited", 60, 1)


@pytest.mark.req("F19")
@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_server_errors_are_retried_three_times(status: int) -> None:
    with serving(lambda n, request: Reply(status=status)) as server:
        assert reason(endpoint(server.url, total=30)) == "unavailable"
        assert len(server.requests) == 3


@pytest.mark.req("F19")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_refusals_are_not_retried(status: int) -> None:
    with serving(lambda n, request: Reply(status=status)) as server:
        assert reason(endpoint(server.url)) == "refused"
        assert len(server.requests) == 1


@pytest.mark.req("F19")
def test_a_reset_connection_is_retried() -> None:
    with serving(lambda n, request: Reply(reset=True)) as server:
        assert reason(endpoint(server.url, total=30)) == "unavailable"
        assert len(server.requests) == 3


@pytest.mark.req("F20", "O-05")
@pytest.mark.parametrize("bad", [Reply(hang=True), Reply(content="x" * 400, drip=0.05)], ids=["hang", "drip"])
def test_the_total_deadline_ends_slow_calls(bad: Reply) -> None:
    with serving(lambda n, request: bad) as server:
        assert reason(endpoint(server.url, total=0.5)) == "deadline"


@pytest.mark.req("F21")
def test_a_huge_body_is_cut_off() -> None:
    with serving(lambda n, request: Reply(body=b"x" * 50_000_000)) as server:
        assert reason(endpoint(server.url, total=20)) == "too_large"


@pytest.mark.req("F21", "S30")
def test_a_redirect_is_not_followed() -> None:
    with serving(lambda n, request: Reply(status=302, headers={"location": "http://127.0.0.1:1/"})) as server:
        assert reason(endpoint(server.url)) == "refused"
        assert len(server.requests) == 1


@pytest.mark.req("F21")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"5",
        b'"x"',
        b'{"choices": []}',
        b'{"choices": 7}',
        b'{"choices": [null]}',
        b"\xff\xfe",
    ],
)
def test_a_body_that_is_no_completion_is_never_text(body: bytes) -> None:
    with serving(lambda n, request: Reply(body=body)) as server:
        assert outcome(endpoint(server.url)) in ("refused", "unavailable", "")


@pytest.mark.parametrize("content", ["null", "5", '["a"]', '{"a": 1}'])
def test_content_that_is_no_text_is_empty(content: str) -> None:
    choice = f'{{"finish_reason": 3, "message": {{"content": {content}}}}}'
    body = f'{{"choices": [{choice}], "usage": {{"prompt_tokens": -1}}}}'
    with serving(lambda n, request: Reply(body=body.encode())) as server:
        assert ask(endpoint(server.url)) == Completion(text="")


def test_nobody_listens() -> None:
    assert reason(endpoint("http://127.0.0.1:1/v1", total=20)) == "unavailable"


def test_tls_to_a_plain_port_is_unavailable() -> None:
    with serving(lambda n, request: Reply(content="ok")) as server:
        assert reason(endpoint(server.url.replace("http:", "https:"), total=20)) == "unavailable"


def test_concurrency_is_bounded() -> None:
    async def many(where: Endpoint) -> list[Completion]:
        model = OpenAICompatible(where)
        try:
            calls = [model.generate("s", "u", schema=None, max_tokens=5) for _ in range(40)]
            return await asyncio.gather(*calls)
        finally:
            await model.close()

    with serving(lambda n, request: Reply(content="ok", drip=0.001)) as server:
        replies = asyncio.run(many(endpoint(server.url, concurrency=8, total=60)))
        assert len(replies) == 40
        assert 1 < server.most_open <= 8


@pytest.mark.parametrize("accepted", ["json_schema", "json_object", "plain"])
def test_the_probe_finds_the_strictest_mode(accepted: str) -> None:
    order = ["json_schema", "json_object", "plain"]

    def script(number: int, request: dict[str, object]) -> Reply:
        form = cast("dict[str, str]", request.get("response_format", {"type": "plain"}))
        strict = order.index(form["type"]) < order.index(accepted)
        return Reply(status=400) if strict else Reply(content='{"ok": true}')

    with serving(script) as server:
        assert asyncio.run(probe(endpoint(server.url))).mode == accepted


def test_the_probe_finds_a_model_that_takes_no_temperature() -> None:
    def script(number: int, request: dict[str, object]) -> Reply:
        return Reply(status=400) if "temperature" in request else Reply(content='{"ok": true}')

    with serving(script) as server:
        found = asyncio.run(probe(endpoint(server.url)))
        assert ask(found).text == '{"ok": true}'
        assert (found.mode, found.temperature) == ("json_schema", False)
        assert {"max_completion_tokens", "seed"} <= set(server.requests[-1])


@pytest.mark.parametrize("status", [401, 403, 404])
def test_the_probe_stops_at_a_wrong_key_or_name(status: int) -> None:
    with serving(lambda n, request: Reply(status=status)) as server:
        with pytest.raises(GeneratorError, match=str(status)):
            asyncio.run(probe(endpoint(server.url)))
        assert len(server.requests) == 1
