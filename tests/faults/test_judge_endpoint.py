"""The generator against an endpoint that misbehaves: a named reason inside the deadline, whatever comes (F18-F20)."""

from __future__ import annotations

import asyncio
import random
import ssl
import subprocess
from pathlib import Path
from typing import cast

import msgspec
import pytest

from aftercheck_worker.judge.guard import Guarded
from aftercheck_worker.models.anthropic_messages import AnthropicMessages
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
        b"[" * 100_000,
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


def test_what_only_a_lax_reader_takes_is_read() -> None:
    body = rb'{"choices": [{"message": {"content": "ok \ud800"}, "logprobs": NaN}], "usage": {"prompt_tokens": 2}}'
    with serving(lambda n, request: Reply(body=body)) as server:
        assert ask(endpoint(server.url)) == Completion(text="ok \ud800", prompt_tokens=2)


def test_half_of_a_surrogate_pair_in_judged_text_is_sent_as_a_mark() -> None:
    async def once(where: Endpoint) -> None:
        model = OpenAICompatible(where)
        try:
            await model.generate("s", "a \ud800 ї", schema=None, max_tokens=5)
        finally:
            await model.close()

    with serving(lambda n, request: Reply(content="ok")) as server:
        asyncio.run(once(endpoint(server.url)))
        assert server.requests[0]["messages"] == [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a ? ї"},
        ]


def test_nobody_listens() -> None:
    assert reason(endpoint("http://127.0.0.1:1/v1", total=20)) == "unavailable"


def test_tls_to_a_plain_port_is_unavailable() -> None:
    with serving(lambda n, request: Reply(content="ok")) as server:
        assert reason(endpoint(server.url.replace("http:", "https:"), total=20)) == "unavailable"


class Patient(random.Random):
    """Waits for nothing, and counts the retries that it was asked to spread."""

    def __init__(self) -> None:
        super().__init__(1)
        self.asked = 0

    def uniform(self, a: float, b: float) -> float:
        self.asked += 1
        return 0.0


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A certificate that nobody has signed but itself, and a server's context with it."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context


@pytest.mark.req("F21")
@pytest.mark.parametrize("back_end", [OpenAICompatible, AnthropicMessages])
def test_a_certificate_that_nobody_signed_is_refused_at_once(
    certified: tuple[Path, ssl.SSLContext], back_end: type[OpenAICompatible | AnthropicMessages]
) -> None:
    jitter = Patient()

    async def once(where: Endpoint) -> None:
        model = back_end(where, jitter=jitter)
        guarded = Guarded(model)
        try:
            await guarded.generate("s", "u", schema=None, max_tokens=5)
        finally:
            await model.close()

    with serving(lambda n, request: Reply(content="ok"), certified[1]) as server:
        with pytest.raises(GeneratorError, match=r"untrusted: the endpoint's certificate: self-signed") as caught:
            asyncio.run(once(endpoint(server.url, total=20)))

        assert caught.value.reason == "untrusted"
        assert (server.requests, jitter.asked) == ([], 0)


def test_a_certificate_that_is_trusted_is_taken(
    certified: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certified[0]))
    with serving(lambda n, request: Reply(content="ok"), certified[1]) as server:
        assert ask(endpoint(server.url, total=20)).text == "ok"


def test_a_probe_stops_at_a_certificate_that_is_refused(certified: tuple[Path, ssl.SSLContext]) -> None:
    with (
        serving(lambda n, request: Reply(content="ok"), certified[1]) as server,
        pytest.raises(GeneratorError, match="untrusted"),
    ):
        asyncio.run(probe(endpoint(server.url, total=20)))


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
