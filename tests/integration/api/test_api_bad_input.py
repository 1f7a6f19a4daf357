"""What comes broken, foreign or at a bad time: a clear 4xx or 503, one line of log, no user text in it, nothing lost.

The list is the issue's. An agent that raises is tested with the guard, in tests/unit/producer.
"""

from __future__ import annotations

import gzip
import json
import logging
import secrets
from collections.abc import Callable

import msgspec
import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from aftercheck_worker.evaluators import Evaluator, assemble
from aftercheck_worker.stages.scoring import Policy
from aftercheck_worker.storage import database, erasure, feedback
from aftercheck_worker.testing import ScriptedVerifier
from tests.integration.api.test_api_routes import entries

pytestmark = pytest.mark.integration

Client = Callable[..., TestClient]
Store = Callable[..., str]
WORD = "SENTINEL-7f3a"
CHECK = {"agent_id": "shop", "input": WORD, "output": f"{WORD} costs 12 euro.", "context": [f"{WORD} is dear."]}
PROTOBUF, JSON = "application/x-protobuf", "application/json"


@pytest.fixture
def scripted() -> Evaluator:
    return assemble("down", ScriptedVerifier({f"{WORD} costs 12 euro.": RuntimeError(WORD)}), policy=Policy())


def traced(text: str = WORD) -> bytes:
    span = {
        "traceId": secrets.token_hex(16),
        "spanId": secrets.token_hex(8),
        "name": "chat",
        "attributes": [{"key": "gen_ai.prompt.0.content", "value": {"stringValue": text}}],
    }
    return msgspec.json.encode({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


@pytest.mark.req("S24", "S25")
@pytest.mark.parametrize(
    ("path", "content", "headers", "status"),
    [
        ("/monitor/check", json.dumps({**CHECK, "output": WORD * 90_000}).encode(), {"Content-Type": JSON}, 413),
        ("/v1/traces", b" " * (8 * 2**20 + 1), {"Content-Type": JSON}, 413),
        ("/v1/traces", WORD.encode() + b"\xff\x00", {"Content-Type": PROTOBUF}, 400),
        ("/v1/traces", f'["{WORD}"'.encode(), {"Content-Type": JSON}, 400),
        ("/v1/logs", b"\x0a\xff" + WORD.encode(), {"Content-Type": PROTOBUF}, 400),
        ("/v1/traces", gzip.compress(b" " * 40_000_000), {"Content-Type": JSON, "Content-Encoding": "gzip"}, 413),
        ("/v1/traces", traced(), {"Content-Type": "text/plain"}, 415),
        ("/monitor/check", json.dumps(CHECK).encode(), {"Content-Type": "text/plain"}, 422),
        ("/monitor/check", json.dumps({**CHECK, WORD: WORD}).encode(), {"Content-Type": JSON}, 422),
        ("/monitor/check", f'{{"output": "{WORD}'.encode(), {"Content-Type": JSON}, 422),
        ("/monitor/check", b"[" * 100_000, {"Content-Type": JSON}, 400),
        ("/v1/feedback", json.dumps({"trace_id": WORD, "value": "up"}).encode(), {"Content-Type": JSON}, 422),
    ],
)
def test_a_body_that_cannot_be_used(
    client: Client,
    redis_url: str,
    caplog: pytest.LogCaptureFixture,
    path: str,
    content: bytes,
    headers: dict[str, str],
    status: int,
) -> None:
    app = client("check", "ingest", "feedback")
    before = entries(redis_url)
    with caplog.at_level(logging.DEBUG, "aftercheck_worker"):
        reply = app.post(path, content=content, headers=headers)
    assert reply.status_code == status, reply.text
    assert reply.json()["error"]
    assert WORD not in reply.text
    assert WORD not in caplog.text
    assert len(caplog.records) <= 1
    assert entries(redis_url) == before


@pytest.mark.req("S23", "S37")
def test_a_foreign_token(client: Client) -> None:
    app = client("check")
    mine = app.headers["Authorization"]
    for word in ("", mine[:-1] + ("A" if mine[-1] != "A" else "B"), f"Bearer ac_other_{secrets.token_urlsafe(32)}"):
        reply = app.post("/monitor/check", json=CHECK, headers={"Authorization": word})
        assert (reply.status_code, WORD in reply.text) == (401, False)
    assert app.post("/v1/feedback", json={"trace_id": "a" * 32, "value": "up"}).status_code == 403


@pytest.mark.req("R6")
def test_feedback_that_is_replayed_counts_once(client: Client, database_url: str, redis_url: str) -> None:
    app = client("feedback")
    body = {"trace_id": secrets.token_hex(16), "value": "down", "user_hash": "u1", "app": "shop", "at": 5}
    before = len(entries(redis_url))
    for _ in range(3):
        assert app.post("/v1/feedback", json=body).status_code == 202
    assert len(entries(redis_url)) == before + 3
    with database.connect(database_url, name="test") as connection:
        thumb = feedback.Feedback(trace_id=str(body["trace_id"]), value=-1.0, user_hash="u1")
        for _ in range(3):
            feedback.put(connection, "default", thumb)
        count = connection.execute(
            "SELECT count(*) FROM feedback WHERE trace_id = %s", (body["trace_id"],)
        ).fetchone()
    assert count == (1,)


@pytest.mark.req("R6", "S35")
def test_feedback_for_a_trace_never_seen_and_one_erased_are_answered_alike(
    client: Client, store: Store, database_url: str, redis_url: str
) -> None:
    app = client("feedback")
    gone = store(answer="The plan costs 12 euro.")
    with database.connect(database_url, name="test") as connection:
        erasure.erase(connection, "default", gone, actor="test", elsewhere={})
    replies = [
        app.post("/v1/feedback", json={"trace_id": one, "value": "up", "comment": WORD})
        for one in (secrets.token_hex(16), gone)
    ]
    assert {(reply.status_code, reply.text) for reply in replies} == {(202, '{"accepted":true}')}
    assert gone.encode() not in {fields[b"tid"] for fields in entries(redis_url)}


@pytest.mark.req("R32")
def test_a_verifier_that_is_down_is_503_and_comes_back(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    app = client("check")
    with caplog.at_level(logging.DEBUG, "aftercheck_worker"):
        reply = app.post("/monitor/check", json=CHECK)
    assert reply.status_code == 503
    assert int(reply.headers["Retry-After"]) >= 1
    assert WORD not in reply.text + caplog.text
    assert sum(record.levelno >= logging.ERROR for record in caplog.records) == 1
    assert app.post("/monitor/check", json={**CHECK, "output": "Fine."}).status_code == 200


@pytest.mark.req("R32", "F11")
def test_a_check_needs_no_store(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    dead = SecretStr("postgresql://u:p@127.0.0.1:1/x")
    app = client("check", database_url=dead, redis_url=SecretStr("redis://127.0.0.1:1/0"))
    reply = app.post("/monitor/check", json={**CHECK, "output": "Fine."})
    assert reply.status_code == 200, reply.text
    assert WORD not in caplog.text


@pytest.mark.req("F08", "S24")
def test_a_full_or_dead_stream_asks_the_sender_to_come_back(client: Client, redis_url: str) -> None:
    full = client("ingest", "feedback", stream_max_bytes=1)
    for path, content in (
        ("/v1/traces", traced()),
        ("/v1/feedback", b'{"trace_id": "%s", "value": "up"}' % (b"a" * 32)),
    ):
        for app in (full, client("ingest", "feedback", redis_url=SecretStr("redis://127.0.0.1:1/0"))):
            before = entries(redis_url)
            reply = app.post(path, content=content, headers={"Content-Type": JSON})
            assert (reply.status_code, "retry-after" in reply.headers) == (503, True), reply.text
            assert entries(redis_url) == before


def test_spans_without_ids_or_too_large_are_counted_as_rejected(client: Client, redis_url: str) -> None:
    app = client("ingest", max_payload_bytes=2_000)
    document = msgspec.json.decode(traced("x" * 40_000))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"] += [{"name": "no ids"}]
    reply = app.post("/v1/traces", content=msgspec.json.encode(document), headers={"Content-Type": JSON})
    assert reply.status_code == 200
    assert reply.json()["partialSuccess"]["rejectedSpans"] == "2"
