"""The generator on Anthropic's Messages API, against a fake that refuses what the service refuses."""

from __future__ import annotations

import asyncio
import random

import pytest
from starlette.responses import Response

from aftercheck_schemas import Claim, Interaction, Judgement, Passage
from aftercheck_worker.judge import Judge, JudgePlan
from aftercheck_worker.judge.stub import Stub
from aftercheck_worker.judge.stub.asked import read
from aftercheck_worker.models.anthropic_messages import AnthropicMessages, probe
from aftercheck_worker.models.base import Completion, Generator, GeneratorError
from aftercheck_worker.models.endpoint import Endpoint, Mode
from aftercheck_worker.stages.judging.schemas import SCHEMAS
from tests.integration.judge.messages_api import KEY, Ask, Messages, message, refusal
from tests.integration.judge.serving import serving

pytestmark = pytest.mark.integration

OK = '{"ok":true}'


def endpoint(url: str, mode: Mode = "json_schema", **changes: float) -> Endpoint:
    return Endpoint(
        url=url.removesuffix("/v1"), model="claude", key=KEY, mode=mode, total=changes.get("total", 20.0), attempts=2
    )


def ask(where: Endpoint, *, seed: int = 0) -> Completion:
    async def once() -> Completion:
        model = AnthropicMessages(where, jitter=random.Random(1))
        try:
            return await model.generate("s", "u", schema=SCHEMAS["faithfulness"], max_tokens=9, seed=seed)
        finally:
            await model.close()

    return asyncio.run(once())


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "plain"])
def test_a_reply_in_every_mode(mode: Mode) -> None:
    fake = Messages(lambda _: OK)
    with serving(fake.app()) as url:
        found = ask(endpoint(url, mode))

    (asked,) = fake.asked
    assert found == Completion(text=OK, prompt_tokens=16, completion_tokens=7)
    assert (asked.output_config is not None, bool(asked.tools)) == (mode == "json_schema", mode == "json_object")
    assert (asked.system, asked.messages[0].content, asked.temperature) == ("s", "u", 0)


def test_another_sample_is_asked_warmer() -> None:
    fake = Messages(lambda _: OK)
    with serving(fake.app()) as url:
        ask(endpoint(url), seed=1)

    assert fake.asked[0].temperature == 0.4


@pytest.mark.parametrize(
    ("structured", "tools", "warm", "mode"),
    [
        (True, True, True, "json_schema"),
        (True, True, False, "json_schema"),
        (False, True, True, "json_object"),
        (False, False, True, "plain"),
    ],
)
def test_the_probe_finds_what_the_model_takes(structured: bool, tools: bool, warm: bool, mode: Mode) -> None:
    fake = Messages(lambda _: OK, structured=structured, tools=tools, warm=warm)
    with serving(fake.app()) as url:
        found = asyncio.run(probe(endpoint(url)))

    assert (found.mode, found.temperature) == (mode, warm)
    parameters = AnthropicMessages(found).info.parameters
    assert (parameters["mode"], parameters["temperature"]) == (mode, "0|0.4" if warm else "none")


def test_a_cut_reply_says_so_and_a_refusal_is_empty() -> None:
    for stop, cut in (("max_tokens", True), ("refusal", False)):
        with serving(Messages(lambda a, stop=stop: message(a, "", stop=stop)).app()) as url:  # type: ignore[misc]
            assert ask(endpoint(url)) == Completion(text="", cut=cut, prompt_tokens=16, completion_tokens=7)


@pytest.mark.req("F18", "F19", "F21")
@pytest.mark.parametrize(
    ("reply", "reason", "calls"),
    [
        (refusal(429, "rate_limit_error", {"retry-after": "60"}), "rate_limited", 1),
        (refusal(529, "overloaded_error"), "unavailable", 2),
        (refusal(500, "api_error"), "unavailable", 2),
        (refusal(404, "not_found_error"), "refused", 1),
        (Response(b"{"), "refused", 1),
        (Response(b'{"type": "error"}'), "refused", 1),
        (Response(b" " * 3_000_000), "too_large", 1),
        (Response(status_code=302, headers={"location": "http://127.0.0.1:1"}), "refused", 1),
    ],
)
def test_every_failure_has_a_reason(reply: Response, reason: str, calls: int) -> None:
    fake = Messages(lambda _: reply)
    with serving(fake.app()) as url, pytest.raises(GeneratorError) as caught:
        ask(endpoint(url))

    assert (caught.value.reason, len(fake.asked)) == (reason, calls)
    assert caught.value.retry_after == (60 if reason == "rate_limited" else None)


def test_a_wrong_key_is_refused_and_never_shown() -> None:
    with serving(Messages(lambda _: OK).app()) as url, pytest.raises(GeneratorError) as caught:
        ask(Endpoint(url=url.removesuffix("/v1"), model="m", key="secret-key"))

    assert caught.value.reason == "refused"
    assert "secret-key" not in str(caught.value)


def test_a_whole_answer_is_judged() -> None:
    stub = Stub()

    def script(asked: Ask) -> str:
        return stub.reply(read(asked.system, asked.messages[0].content)).text

    text = "The tower is 381 metres high."
    passages = (Passage(source_id="s1", text="It is known that the tower is 381 metres high."),)
    interaction = Interaction(
        trace_id="a" * 32, span_id="b" * 16, app="t", question="How high?", answer=text, passages=passages
    )
    claims = [Claim(id="c1", text=text, start=0, end=len(text))]

    async def judged(url: str) -> Judgement:
        model = AnthropicMessages(endpoint(url))
        assert isinstance(model, Generator)
        try:
            return await Judge(model).judge(interaction, claims, passages, JudgePlan())
        finally:
            await model.close()

    with serving(Messages(script).app()) as url:
        found = asyncio.run(judged(url))

    assert ([claim.status for claim in found.claims], found.failures) == (["supported"], ())
