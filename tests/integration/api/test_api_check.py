"""The check in the loop: the contract, its record, memory, redaction and judge (R32, R53)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import msgspec
import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from aftercheck_worker.api.state import State
from tests.faults import opinion
from tests.faults.judge_server import Reply, Script, serving

pytestmark = pytest.mark.integration

Client = Callable[..., TestClient]
BODY: dict[str, object] = {
    "agent_id": "shop",
    "input": "What does the plan cost?",
    "output": "The plan costs 12 euro. It includes support.",
    "context": ["Plans start at 12 euro a month."],
}
CONTRACT = {
    *("risk", "action", "verdicts", "claims", "outcome", "evaluator_version"),
    *("trace_id", "reason", "faithfulness", "faithfulness_upper", "risk_v2", "flagged", "decided_by", "origin"),
    *("evaluator", "quality", "unresolved", "failures"),
}
SECRET = "jan.kowalski@example.com"


def state(client: TestClient) -> State:
    app = client.app
    assert isinstance(app, FastAPI)
    found = app.state.aftercheck
    assert isinstance(found, State)
    return found


def stored(client: TestClient, database_url: str, trace_id: str) -> dict[str, list[tuple[object, ...]]]:
    state(client).recorder.join()
    with psycopg.connect(database_url) as connection:
        queries = {
            "evaluation": "SELECT origin, outcome FROM evaluation WHERE trace_id = %s",
            "ledger": "SELECT origin, state FROM ledger WHERE trace_id = %s",
            "claim": "SELECT text FROM claim JOIN ledger USING (day, evaluation_id) WHERE trace_id = %s",
            "body": "SELECT body::text FROM interaction JOIN ledger USING (day, evaluation_id) WHERE trace_id = %s",
        }
        return {name: connection.execute(query.encode(), (trace_id,)).fetchall() for name, query in queries.items()}


@pytest.mark.req("R32")
def test_the_contract_with_every_form_of_evidence(client: Client) -> None:
    body = {
        **BODY,
        "context": ["Plans start at 12 euro.", {"source_id": "faq", "text": "Ask us.", "kind": "doc", "trust": 0.5}],
        "tool_logs": [
            "plan looked up",
            {"name": "price", "arguments": {"plan": 1}, "result": {"euro": 12}, "ok": True, "at": 17},
            {"name": "mail", "arguments": "{}", "result": "sent", "ok": False},
        ],
        "memory_refs": ["m-17", {"source_id": "m-18", "text": "Likes short answers.", "kind": "memory"}],
    }
    reply = client("check").post("/monitor/check", json=body)
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert set(found) == CONTRACT
    assert found["unresolved"] == ["m-17"]
    assert [one["status"] for one in found["verdicts"]] == ["supported", "contradicted"]
    assert found["risk"] == pytest.approx(0.45)
    assert found["decided_by"] == "verifier"


@pytest.mark.req("R53", "R32")
def test_a_check_is_kept_with_origin_check_and_moves_no_rate(client: Client, database_url: str) -> None:
    app = client("check", "read")
    trace_id = app.post("/monitor/check", json=BODY).json()["trace_id"]
    rows = stored(app, database_url, trace_id)
    assert rows["evaluation"] == [("check", "ungrounded")]
    assert rows["ledger"] == [("check", "scored")]
    assert rows["claim"] == [("The plan costs 12 euro.",), ("It includes support.",)]
    shown = app.get(f"/v1/traces/{trace_id}").json()
    assert len(shown["answers"][0]["evaluations"][0]["claims"]) == 2
    with psycopg.connect(database_url) as connection:
        origins = connection.execute("SELECT DISTINCT origin FROM total WHERE app = 'shop'").fetchall()
    assert ("production",) not in origins
    assert ("check",) in origins


@pytest.mark.req("S01")
def test_what_is_kept_is_redacted_and_what_is_answered_is_the_callers_own(client: Client, database_url: str) -> None:
    app = client("check")
    body = {
        **BODY,
        "output": f"Write to {SECRET} today. It includes support.",
        "context": [f"Our address: {SECRET}. Plans start at 12 euro."],
        "tool_logs": [{"name": "login", "arguments": {"password": "hunter2!"}, "result": {"mail": SECRET}}],
    }
    reply = app.post("/monitor/check", json=body).json()
    output = str(body["output"])
    assert [one["text"] for one in reply["claims"]] == [f"Write to {SECRET} today.", "It includes support."]
    for claim in reply["claims"]:
        assert output[claim["start"] : claim["end"]] == claim["text"]
    rows = stored(app, database_url, reply["trace_id"])
    assert "kowalski" not in str(rows)
    assert "hunter2" not in str(rows)
    assert "<EMAIL_" in str(rows["body"])
    assert "<EMAIL_" in str(rows["claim"])


@pytest.mark.req("R8", "R32")
def test_memory_resolves_by_id_and_what_does_not_is_no_evidence(
    client: Client, database_url: str, tmp_path: Path
) -> None:
    memory = tmp_path / "memory.jsonl"
    rows = [{"source_id": "m-1", "text": "The customer has the basic plan.", "trust": 0.5}, {"text": "No id."}]
    memory.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    app = client("check", api_memory=memory)
    reply = app.post("/monitor/check", json={**BODY, "memory_refs": ["m-1", "m-2", "m-1"]}).json()
    assert reply["unresolved"] == ["m-2"]
    body = msgspec.json.decode(str(stored(app, database_url, reply["trace_id"])["body"][0][0]))
    found = [one for one in body["passages"] if one.get("kind") == "memory"]
    assert found == [{"source_id": "m-1", "text": "The customer has the basic plan.", "kind": "memory", "trust": 0.5}]


@pytest.mark.req("R32", "R24")
def test_a_judge_is_asked_only_when_the_caller_wants_it(client: Client, database_url: str) -> None:
    quote = "Plans start at 12 euro a month."
    with serving(opinion.says("contradicted", quote)) as server:
        app = client("check", judge_url=server.url, judge_mode="json_schema")
        assert app.post("/monitor/check", json=BODY).json()["decided_by"] == "verifier"
        assert server.requests == []
        reply = app.post("/monitor/check", json={**BODY, "judge": True}).json()
        assert len(server.requests) == 1
        assert SECRET not in str(server.requests)
    assert reply["decided_by"] == "judge"
    assert reply["failures"] == []
    assert stored(app, database_url, reply["trace_id"])["ledger"] == [("check", "scored")]
    with psycopg.connect(database_url) as connection:
        query = "SELECT count(*) FROM judgement JOIN ledger USING (day, evaluation_id) WHERE trace_id = %s"
        assert connection.execute(query, (reply["trace_id"],)).fetchone() == (1,)


@pytest.mark.req("R32", "F18")
@pytest.mark.parametrize(
    ("script", "reason"),
    [(opinion.always(Reply(status=400)), "judge_refused"), (opinion.always(Reply(content="no")), "judge_unparsable")],
)
def test_a_judge_that_fails_leaves_the_verifiers_word(client: Client, script: Script, reason: str) -> None:
    with serving(script) as server:
        app = client("check", judge_url=server.url, judge_mode="json_schema")
        reply = app.post("/monitor/check", json={**BODY, "judge": True})
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert [one["status"] for one in found["verdicts"]] == ["supported", "contradicted"]
    assert (found["failures"], found["decided_by"]) == ([reason], "verifier_fallback")


def test_without_a_judge_the_reply_says_so(client: Client) -> None:
    found = client("check").post("/monitor/check", json={**BODY, "judge": True}).json()
    assert found["failures"] == ["judge_not_configured"]
    assert found["risk"] == pytest.approx(0.45)


@pytest.mark.req("S24")
def test_a_redis_that_is_down_limits_nobody_and_costs_its_timeout_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    app = client("check", api_rate_per_minute=6, redis_url=SecretStr("redis://127.0.0.1:1/0"))
    with caplog.at_level(logging.WARNING):
        codes = [app.post("/monitor/check", json=BODY).status_code for _ in range(12)]
    assert codes == [200] * 12
    assert sum("nobody is limited" in line for line in caplog.messages) == 1
