"""The stub's endpoint over HTTP: our generator gets on with it, and it refuses what no judge should get."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from aftercheck_schemas import Claim, Interaction, Judgement, Passage
from aftercheck_worker import settings
from aftercheck_worker.cli import application as cli
from aftercheck_worker.judge import Judge, JudgePlan
from aftercheck_worker.judge.stub import Stub
from aftercheck_worker.judge.stub.server import application
from aftercheck_worker.models.base import GeneratorError
from aftercheck_worker.models.openai_compatible import Endpoint, Mode, OpenAICompatible, probe
from aftercheck_worker.stages.judging import prompts
from tests.integration.judge.serving import serving

pytestmark = pytest.mark.integration

PASSAGES = (Passage(source_id="s1", text="The tower was finished in 1931. It is 381 metres high."),)
ANSWER = "The tower is 381 metres high. It was finished in 1929."
CLAIMS = [
    Claim(id="c1", text=ANSWER[:29], start=0, end=29),
    Claim(id="c2", text=ANSWER[30:], start=30, end=len(ANSWER)),
]
INTERACTION = Interaction(
    trace_id="a" * 32, span_id="b" * 16, app="t", question="How high is the tower?", answer=ANSWER, passages=PASSAGES
)


@contextmanager
def stub(answers: Stub, *, accepts: Mode = "json_schema", key: str = "") -> Generator[str]:
    """Run the endpoint for the length of a block."""
    with serving(application(answers, accepts=accepts, key=key)) as url:
        yield url


def judged(endpoint: Endpoint) -> Judgement:
    async def once() -> Judgement:
        generator = OpenAICompatible(endpoint)
        try:
            return await Judge(generator).judge(INTERACTION, CLAIMS, PASSAGES, JudgePlan())
        finally:
            await generator.close()

    return asyncio.run(once())


def test_a_whole_answer_is_judged_over_http() -> None:
    with stub(Stub(), key="k") as url:
        found = judged(Endpoint(url=url, model="stub-honest", key="k"))

    assert [claim.status for claim in found.claims] == ["supported", "contradicted"]
    assert [part.text for part in found.claims[0].evidence] == ["It is 381 metres high."]
    assert (found.calls, found.failures, found.answer_relevance) == (3, (), 1.0)
    assert found.prompt_tokens > 0


@pytest.mark.parametrize("accepts", ["json_schema", "json_object", "plain"])
def test_the_probe_finds_what_is_accepted(accepts: Mode) -> None:
    with stub(Stub(), accepts=accepts) as url:
        found = asyncio.run(probe(Endpoint(url=url, model="m")))
        reply = judged(found)

    assert found.mode == accepts
    assert reply.failures == ()


def test_a_wrong_key_is_refused() -> None:
    with stub(Stub(), key="right") as url, pytest.raises(GeneratorError, match="401"):
        judged(Endpoint(url=url, model="m", key="wrong"))


@pytest.mark.req("S10")
def test_what_is_no_sound_request_is_refused() -> None:
    made = prompts.faithfulness("q", CLAIMS, PASSAGES, secrets.token_hex(16))
    messages = [{"role": "system", "content": made.system}, {"role": "user", "content": made.user}]
    good: dict[str, object] = {"model": "m", "messages": messages, "max_tokens": 9, "temperature": 0.0}
    bad: list[dict[str, object]] = [
        good | {"messages": messages[:1]},
        good | {"messages": messages[::-1]},
        good | {"max_tokens": 0},
        good | {"temperature": 9},
        good | {"stream": True},
        good | {"response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": {}}}},
    ]
    headers = {"authorization": "Bearer x"}
    with stub(Stub()) as url, httpx.Client(base_url=url, headers=headers) as client:
        found = [client.post("/chat/completions", json=one).status_code for one in bad]
        accepted = client.post("/chat/completions", json=good)
        again = client.post("/chat/completions", json=good)
        unsigned = httpx.post(f"{url}/chat/completions", json=good)

    assert found == [400] * len(bad)
    assert (accepted.status_code, again.status_code, unsigned.status_code) == (200, 400, 401)


@pytest.mark.req("F18", "F19", "F20", "F21")
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("rate_limited_long", "rate_limited"),
        ("server_error", "unavailable"),
        ("hang", "deadline"),
        ("drip", "deadline"),
        ("huge", "too_large"),
        ("redirect", "refused"),
    ],
)
def test_faults_of_transport_have_a_reason(fault: str, reason: str) -> None:
    with stub(Stub("faulty", faults=[fault])) as url:
        endpoint = Endpoint(url=url, model="m", total=1.5 if reason == "deadline" else 30, attempts=1)
        with pytest.raises(GeneratorError) as caught:
            judged(endpoint)

    assert caught.value.reason == reason


@pytest.mark.req("F21")
@pytest.mark.parametrize("fault", ["fenced", "prose", "malformed", "truncated"])
def test_faults_of_form_are_read_or_asked_again(fault: str) -> None:
    with stub(Stub("faulty", faults=[fault, *["none"] * 20])) as url:
        found = judged(msgspec.structs.replace(Endpoint(url=url, model="m"), concurrency=1))

    assert [claim.status for claim in found.claims] == ["supported", "contradicted"]
    assert found.failures == ()


def test_the_shipped_stub_is_a_judge_for_the_whole_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {
        "id": "a",
        "query": "How high?",
        "context": [PASSAGES[0].text],
        "response": "The tower is 381 metres high.",
    }
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")
    monkeypatch.setenv("AFTERCHECK_JUDGE_SHARE", "all")
    with stub(Stub()) as url:
        monkeypatch.setenv("AFTERCHECK_JUDGE_URL", url)
        settings.current.cache_clear()
        try:
            code = cli.run(["evaluate", str(file), "--judge"])
        finally:
            settings.current.cache_clear()

    found = json.loads(capsys.readouterr().out)
    (claim,) = found["claims"]
    assert (code, found["decided_by"], claim["status"], claim["decided_by"]) == (0, "judge", "supported", "judge")
    (part,) = claim["evidence"]
    assert part["text"] == PASSAGES[0].text[part["start"] : part["end"]] == "It is 381 metres high."
