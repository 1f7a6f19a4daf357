"""`aftercheck judge parse` over the case file: exactly the expected words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aftercheck_worker.cli import application

CASES = Path(__file__).parents[2] / "cases" / "judge_replies.jsonl"


@pytest.mark.req("R23", "F21")
def test_every_reply_of_the_case_file_is_read_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]

    code = application.run(["judge", "parse", str(CASES)])

    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    assert found == [{"id": case["id"], **case["expected"]} for case in cases]
    assert len(found) == 14


def test_a_row_that_is_no_reply_names_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"id": "a", "claims": ["x"], "context": [], "raw": "\ud800{"}, {"id": "b"}]
    file = tmp_path / "replies.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")

    code = application.run(["judge", "parse", str(file)])

    told = capsys.readouterr()
    assert code == 65
    assert "Line 2" in told.err
    assert json.loads(told.out) == {"id": "a", "parse": "error", "verdicts": []}


def test_named_sources_are_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdict = {"claim_id": "c1", "evidence": [{"source_id": "kb", "quote": "D is green"}], "status": "supported"}
    raw = json.dumps({"verdicts": [verdict | {"confidence": 0.9}]})
    row = {"id": 7, "claims": ["D is green"], "context": [{"source_id": "kb", "text": "D is green."}], "raw": raw}
    file = tmp_path / "replies.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")

    assert application.run(["judge", "parse", str(file)]) == 0
    expected = {"id": 7, "parse": "ok", "verdicts": [{"claim_id": "c1", "status": "supported"}]}
    assert json.loads(capsys.readouterr().out) == expected
