"""Every route over real Postgres and Valkey: what it answers, and what it refuses."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable

import psycopg
import pytest
from fastapi.testclient import TestClient

from aftercheck_schemas import decode_entry
from aftercheck_schemas.wire import stream_key
from aftercheck_worker.intake.link import Link, as_list, as_pairs
from aftercheck_worker.storage import database, feedback

pytestmark = pytest.mark.integration

Client = Callable[..., TestClient]
Store = Callable[..., str]
CHECK = {
    "agent_id": "shop",
    "input": "What does the plan cost?",
    "output": "The plan costs 12 euro. It includes support.",
    "context": ["Plans start at 12 euro a month."],
    "tool_logs": [{"name": "price", "arguments": {"plan": 1}, "result": {"euro": 12}}],
    "memory_refs": ["m-17"],
}


def entries(redis_url: str) -> list[dict[bytes, bytes]]:
    """Fields of all entries of the stream, oldest first."""
    link = Link(redis_url, name="test")
    found = [as_pairs(as_list(one)[1]) for one in as_list(link.call("XRANGE", stream_key(), "-", "+"))]
    link.close()
    return found


@pytest.mark.req("R32", "S23")
def test_check_answers_with_the_contract(client: Client) -> None:
    reply = client("check").post("/monitor/check", json=CHECK)
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert found["risk"] == pytest.approx(0.45)
    assert found["action"] == "warn"
    assert [verdict["status"] for verdict in found["verdicts"]] == ["supported", "contradicted"]
    assert found["unresolved"] == ["m-17"]
    assert found["origin"] == "check"
    assert len(found["evaluator_version"]) == 64
    for claim in found["claims"]:
        assert claim["text"] == CHECK["output"][claim["start"] : claim["end"]]


@pytest.mark.req("R32")
@pytest.mark.parametrize(
    "change",
    [
        {"output": None},
        {"unknown": 1},
        {"context": [{"text": "a", "kind": "rumour"}]},
        {"context": [{"text": "a", "source_id": "1"}, {"text": "b", "source_id": "1"}]},
        {"context": [{"text": "a", "trust": 2}]},
        {"tool_logs": [{"name": "x"}]},
        {"agent_id": ""},
    ],
)
def test_a_wrong_body_is_refused_without_an_echo(client: Client, change: dict[str, object]) -> None:
    body = {**CHECK, "input": "SENTINEL-TEXT", **change}
    reply = client().post("/monitor/check", content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert reply.status_code == 422, reply.text
    assert "SENTINEL" not in reply.text


def test_a_lone_surrogate_is_replaced(client: Client) -> None:
    body = json.dumps({**CHECK, "output": "The plan \ud800 costs 12 euro."})
    reply = client().post("/monitor/check", content=body, headers={"Content-Type": "application/json"})
    assert reply.json()["claims"][0]["text"] == "The plan \ufffd costs 12 euro."


@pytest.mark.req("S23")
@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/monitor/check", "check"),
        ("POST", "/v1/feedback", "feedback"),
        ("GET", f"/v1/traces/{'a' * 32}", "read"),
        ("DELETE", f"/v1/traces/{'a' * 32}", "erase"),
        ("POST", "/v1/traces", "ingest"),
        ("POST", "/v1/logs", "ingest"),
    ],
)
def test_no_wrong_or_narrow_token_enters(client: Client, method: str, path: str, scope: str) -> None:
    other = "read" if scope != "read" else "feedback"
    app = client(other)
    # Sent with a body that fits, so that nothing but the token can be the reason.
    body = CHECK if path == "/monitor/check" else {"trace_id": "a" * 32, "value": "up"}
    assert app.request(method, path, json=body).status_code == 403
    for word in ("", "Bearer ac_nobody_" + "x" * 43, "Bearer nonsense", "Basic YTpi"):
        reply = app.request(method, path, json=body, headers={"Authorization": word})
        assert reply.status_code == 401, (word, reply.text)
        assert reply.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.req("S37")
def test_another_tenant_sees_nothing(client: Client, store: Store) -> None:
    trace_id = store()
    assert client("read").get(f"/v1/traces/{trace_id}").status_code == 200
    foreign = client("read", "erase", tenant="other")
    assert foreign.get(f"/v1/traces/{trace_id}").status_code == 404
    assert foreign.delete(f"/v1/traces/{trace_id}").json()["known"] is False
    assert client("read").get(f"/v1/traces/{trace_id}").status_code == 200


@pytest.mark.req("R5")
def test_a_trace_leads_to_its_claims_and_evidence(client: Client, store: Store) -> None:
    found = client("read").get(f"/v1/traces/{store()}").json()
    claims = found["answers"][0]["evaluations"][0]["claims"]
    assert [claim["status"] for claim in claims] == ["supported", "contradicted"]
    assert client("read").get(f"/v1/traces/{'f' * 32}").status_code == 404
    assert client("read").get("/v1/traces/zz").status_code == 422


@pytest.mark.req("R6", "S25")
def test_feedback_goes_to_the_stream_whether_or_not_the_trace_is_known(client: Client, redis_url: str) -> None:
    app = client("feedback")
    body = {"trace_id": "ab" * 16, "value": "down", "comment": "wrong\x00price", "user_hash": "u1", "app": "shop"}
    before = entries(redis_url)
    reply = app.post("/v1/feedback", json=body)
    assert (reply.status_code, reply.json()) == (202, {"accepted": True})
    after = entries(redis_url)
    assert len(after) == len(before) + 1
    header, payload = decode_entry(after[-1])
    assert (header.kind, header.trace_id, header.app) == ("feedback", "ab" * 16, "shop")
    assert json.loads(zlib.decompress(payload))["comment"] == "wrong\ufffdprice"
    for wrong in ({"trace_id": "x"}, {"value": "sideways"}, {"value": 1e300}, {"more": 1}, {"user_hash": "a b"}):
        assert app.post("/v1/feedback", json={**body, **wrong}).status_code == 422


@pytest.mark.req("R6")
def test_only_a_named_origin_may_send_feedback_from_a_browser(client: Client) -> None:
    app = client("feedback", api_browser_origins="https://shop.example")
    body = {"trace_id": "ab" * 16, "value": "up"}
    good = app.post("/v1/feedback", json=body, headers={"Origin": "https://shop.example"})
    assert good.status_code == 202
    assert good.headers["access-control-allow-origin"] == "https://shop.example"
    assert app.post("/v1/feedback", json=body, headers={"Origin": "https://evil.example"}).status_code == 403
    assert app.post("/monitor/check", json=CHECK, headers={"Origin": "https://shop.example"}).status_code == 403


@pytest.mark.req("S35")
def test_erasure_removes_every_copy_and_leaves_a_tombstone(
    client: Client, store: Store, database_url: str, redis_url: str
) -> None:
    trace_id = store(answer="The SENTINEL plan costs 12 euro.")
    app = client("read", "erase", "feedback", "ingest")
    app.post("/v1/feedback", json={"trace_id": trace_id, "value": "down", "comment": "SENTINEL"})
    receipt = app.delete(f"/v1/traces/{trace_id}").json()
    assert receipt["known"] is True
    assert receipt["removed"]["interaction"] == receipt["removed"]["ledger"] == 1
    assert receipt["removed"]["stream_entries"] == 1
    with psycopg.connect(database_url) as connection:
        for table in ("interaction", "evaluation", "claim", "verdict", "evidence", "judgement", "feedback"):
            query = f"SELECT count(*) FROM {table} AS t WHERE t::text LIKE '%%SENTINEL%%'"
            row = connection.execute(query.encode(), ()).fetchone()
            assert row == (0,), table
        state = connection.execute("SELECT state FROM ledger WHERE trace_id = %s", (trace_id,)).fetchone()
        assert state == ("erased",)
    assert not [one for one in entries(redis_url) if one.get(b"tid") == trace_id.encode()]
    again = app.delete(f"/v1/traces/{trace_id}").json()
    assert (again["known"], set(again["removed"].values())) == (True, {0})
    assert app.delete(f"/v1/traces/{'d' * 32}").json()["known"] is False
    shown = app.get(f"/v1/traces/{trace_id}").json()
    assert shown["erased_at"] is not None
    # A late thumb for an erased trace is answered like any other, and goes nowhere.
    before = entries(redis_url)
    assert app.post("/v1/feedback", json={"trace_id": trace_id, "value": "up"}).status_code == 202
    assert entries(redis_url) == before
    with database.connect(database_url, name="test") as connection:
        assert not feedback.put(connection, "default", feedback.Feedback(trace_id=trace_id, value=1))
        assert feedback.put(connection, "default", feedback.Feedback(trace_id="7" * 32, value=1, comment=None))


@pytest.mark.req("S24")
def test_limits(client: Client) -> None:
    app = client("check", api_rate_per_minute=6)
    big = {**CHECK, "output": "x" * 1_100_000}
    assert app.post("/monitor/check", json=big).status_code == 413
    chunks = (b" " * 100_000 for _ in range(20))
    assert app.post("/monitor/check", content=chunks).status_code == 413
    codes = [app.post("/monitor/check", json=CHECK).status_code for _ in range(4)]
    assert 429 in codes
    refused = app.post("/monitor/check", json=CHECK)
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1


@pytest.mark.req("S24")
def test_without_tokens_only_this_machine_is_served(client: Client) -> None:
    app = client()
    assert app.get("/livez").status_code == 200
    assert app.get("/livez", headers={"Host": "evil.example"}).status_code == 403
    assert app.get("/readyz").json() == {"ok": True, "reasons": []}
    assert "aftercheck_api_requests_total" in app.get("/metrics").text


@pytest.mark.parametrize(
    ("content", "kind", "packed", "status"),
    [
        (b"\xff\xff", "application/x-protobuf", "", 400),
        (b"[1]", "application/json", "", 400),
        (b"{}", "text/plain", "", 415),
        (b"{}", "application/json", "br", 415),
        (b"{}", "application/json", "gzip", 400),
        (gzip.compress(b"{}")[:-4], "application/json", "gzip", 400),
        (gzip.compress(b" " * 40_000_000), "application/json", "gzip", 413),
        (b"[" * 100_000, "application/json", "", 400),
        (gzip.compress(b"{}"), "application/json", "gzip", 200),
        (b"", "application/x-protobuf", "", 200),
    ],
)
def test_the_receiver_refuses_what_it_cannot_read(
    client: Client, content: bytes, kind: str, packed: str, status: int
) -> None:
    headers = {"Content-Type": kind, "Content-Encoding": packed} if packed else {"Content-Type": kind}
    reply = client("ingest").post("/v1/traces", content=content, headers=headers)
    assert reply.status_code == status, reply.text
