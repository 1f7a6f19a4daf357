"""`evaluate --judge` and the doctor's word on the judge, against an endpoint over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_worker import settings as worker_settings
from aftercheck_worker.cli import application, judge_checks
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database
from tests.faults.judge_server import JudgeServer, Reply, serving
from tests.faults.opinion import always, says

pytestmark = pytest.mark.integration

ROW = {
    "id": "a",
    "query": "What is the fee?",
    "context": ["The monthly fee is five euros for every plan."],
    "response": "The monthly fee is about five euros.",
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    with serving(says("supported", "The monthly fee is five euros")) as running:
        monkeypatch.setenv("AFTERCHECK_JUDGE_URL", running.url)
        monkeypatch.setenv("AFTERCHECK_JUDGE_MODE", "plain")
        monkeypatch.setenv("AFTERCHECK_JUDGE_SHARE", "all")
        monkeypatch.setenv("AFTERCHECK_EVALUATOR", "lexical-v1")
        worker_settings.current.cache_clear()
        yield running
    worker_settings.current.cache_clear()


def evaluate(tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(ROW) + "\n")
    code = application.run(("evaluate", str(rows), *options))
    told = capsys.readouterr()
    return code, told.out, told.err


def test_evaluate_lets_the_judge_decide(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], server: JudgeServer
) -> None:
    code, alone, _ = evaluate(tmp_path, capsys)
    assert (code, len(server.requests)) == (0, 0)

    code, out, err = evaluate(tmp_path, capsys, "--judge")

    verifier, judge = json.loads(alone), json.loads(out)
    assert code == 0
    assert ("decided_by" in verifier, judge["decided_by"]) == (False, "judge")
    assert judge["evaluator_version"] != verifier["evaluator_version"]
    (claim,) = judge["claims"]
    assert (claim["status"], claim["decided_by"]) == ("supported", "judge")
    (quote,) = claim["evidence"]
    assert ROW["context"][0][quote["start"] : quote["end"]] == quote["text"] == "The monthly fee is five euros"
    assert "last word: judge 1" in err
    assert server.requests


def test_a_judge_that_fails_leaves_the_verifiers_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], server: JudgeServer
) -> None:
    server.script = always(Reply(status=400))
    out = tmp_path / "out.jsonl"

    code, told, _ = evaluate(tmp_path, capsys, "--judge", "--json", "--out", str(out))

    found, summary = json.loads(out.read_text()), json.loads(told)
    assert code == 0
    assert found["decided_by"] == "verifier_fallback"
    assert [failure["reason"] for failure in found["failures"]] == ["judge_refused"]
    assert (summary["decided_by"], summary["failures"]) == ({"verifier_fallback": 1}, {"judge_refused": 1})


def test_without_a_judge_there_is_nobody_to_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFTERCHECK_EVALUATOR", "lexical-v1")
    worker_settings.current.cache_clear()

    code, _, err = evaluate(tmp_path, capsys, "--judge")

    worker_settings.current.cache_clear()
    assert code == 64
    assert "AFTERCHECK_JUDGE_URL" in err


def test_the_doctor_asks_the_judge_for_one_word(server: JudgeServer) -> None:
    server.script = always(Reply(content='{"ok": true}'))
    (found, _) = judge_checks.endpoint(worker_settings.current())
    assert found.status == "ok"
    assert "plain" in found.detail

    server.script = always(Reply(status=401))
    (found,) = judge_checks.endpoint(worker_settings.current())
    assert found.status == "warn"
    assert "AFTERCHECK_JUDGE_KEY" in found.fix


@pytest.mark.req("R22")
def test_the_doctor_warns_of_relatives_and_of_larger_models(settings: Settings, database_url: str) -> None:
    judged = settings.model_copy(update={"judge_url": "http://127.0.0.1:1/v1", "judge_model": "Qwen2.5-7B"})
    with database.connect(database_url, name="test") as connection:
        connection.autocommit = True
        for number, model in enumerate(("Qwen3-4B", "Llama-3.1-70B", "Phi-2b")):
            _evaluated(connection, number, model)

        found = judge_checks.kin(connection, judged)
        without = judge_checks.kin(connection, settings)

    assert [finding.status for finding in found] == ["warn", "warn"]
    assert found[0].detail.startswith("Qwen3-4B:")
    assert found[1].detail.startswith("Llama-3.1-70B:")
    assert without == []


def _evaluated(connection: psycopg.Connection[TupleRow], number: int, model: str) -> None:
    connection.execute(
        "INSERT INTO evaluation (day, evaluation_id, evaluator_version, tenant, trace_id, span_id, app, model,"
        " evaluator, origin, weight, outcome)"
        " VALUES (current_date, %s, 'v', 'default', 't', 's', 'a', %s, 'e', 'production', 1, 'grounded')",
        (number, model),
    )
