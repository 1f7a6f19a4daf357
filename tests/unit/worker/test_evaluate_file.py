"""`evaluate`: rows in, verdicts out, bad rows named, order kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from aftercheck_worker import evaluate, evaluators, settings
from aftercheck_worker.cli import evaluate as command
from aftercheck_worker.errors import UsageError

KEYS = {
    "id", "supported_probability", "probability_reason", "outcome", "reason", "hallucinated", "flagged",
    "faithfulness", "faithfulness_upper", "risk", "risk_v2", "action", "claims", "citations", "skipped",
    "evaluator", "evaluator_version", "quality",
}  # fmt: skip
CLAIM_KEYS = {
    "id", "text", "start", "end", "type", "subtype", "severity", "status", "confidence", "supported_probability",
    "reason", "evidence",
}  # fmt: skip
PASSAGE = "The cancellation fee is five euros for all plans"


def lexical() -> evaluators.Evaluator:
    return evaluators.resolve("lexical-v1", settings.load({}))


def row(**fields: object) -> bytes:
    return json.dumps(
        {"id": "r", "query": "What is the fee?", "context": [PASSAGE], "response": PASSAGE} | fields
    ).encode()


def run(*lines: bytes, batch: int = 32) -> list[dict[str, Any] | evaluate.BadRow]:
    return [
        found
        if isinstance(found, evaluate.BadRow)
        else cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(evaluate.output(found))))
        for found in evaluate.evaluate(lines, lexical(), batch=batch)
    ]


def one(**fields: object) -> dict[str, Any]:
    (found,) = run(row(**fields))
    assert isinstance(found, dict)
    return found


def test_the_schema_of_a_line() -> None:
    found = one()

    assert set(found) == KEYS
    assert set(found["claims"][0]) == CLAIM_KEYS
    assert set(found["claims"][0]["evidence"][0]) == {"source_id", "start", "end", "text"}
    assert (found["id"], found["outcome"], found["faithfulness"]) == ("r", "grounded", 1.0)
    assert (found["quality"], found["evaluator"]) == ("smoke", "lexical-v1")


@pytest.mark.req("I6")
def test_claims_and_evidence_are_verbatim_at_their_offsets() -> None:
    response = f"{PASSAGE}. Refunds take forty days and cost nothing. Żółć 🦊 is not a fee of 12 zł."
    found = one(
        response=response, context=[{"source_id": "a", "text": PASSAGE}, {"source_id": "b", "text": "🦊 Żółć"}]
    )
    texts = {"a": PASSAGE, "b": "🦊 Żółć"}

    assert len(found["claims"]) >= 2
    for claim in found["claims"]:
        assert response[claim["start"] : claim["end"]] == claim["text"]
        for evidence in claim["evidence"]:
            assert texts[evidence["source_id"]][evidence["start"] : evidence["end"]] == evidence["text"]


@pytest.mark.parametrize(
    "context",
    [
        PASSAGE,
        [PASSAGE],
        [{"text": PASSAGE}],
        [{"text": PASSAGE, "source_id": 7, "kind": "doc", "trust": 0.9, "ok": True, "extra": 1}],
        ["nothing", {"text": PASSAGE, "source_id": "x", "kind": "tool_log"}],
    ],
)
def test_forms_of_context(context: object) -> None:
    assert one(context=context)["outcome"] == "grounded"


@pytest.mark.req("R8")
@pytest.mark.parametrize(
    "context",
    [None, "", [], ["", "  "], [{"text": PASSAGE, "ok": False}], [{"text": PASSAGE, "kind": "history"}]],
)
def test_no_usable_evidence_is_not_found_and_never_a_fake_score(context: object) -> None:
    found = one(context=context)

    assert found["outcome"] == "ungrounded"
    assert {claim["reason"] for claim in found["claims"]} == {"no_evidence_pool"}
    assert found["action"] != "block"


def test_answer_and_question_are_aliases() -> None:
    (found,) = run(json.dumps({"id": 1, "question": "?", "context": PASSAGE, "answer": PASSAGE}).encode())

    assert isinstance(found, dict)
    assert (found["id"], found["outcome"]) == (1, "grounded")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"response": ""}, "no_answer_text"),
        ({"response": " \n"}, "no_answer_text"),
        ({"span_status": "ERROR"}, "error_span"),
    ],
)
def test_what_cannot_be_judged_has_a_reason_and_no_number(fields: dict[str, object], reason: str) -> None:
    found = one(**fields)

    assert (found["outcome"], found["reason"]) == ("not_assessable", reason)
    assert found["faithfulness"] is None
    assert found["supported_probability"] is None


@pytest.mark.req("F25")
@pytest.mark.parametrize(
    "bad",
    [
        b"not json",
        b"[]",
        b'{"query": "no id"}',
        b'{"id": 1}',
        b'{"id": 1, "response": "x", "context": [{"text": 5}]}',
        b'{"id": 1, "response": "x", "context": [{"text": "a", "trust": 2}]}',
        b'{"id": 1, "response": "x", "context": [{"text": "a", "trust": NaN}]}',
        b'{"id": 1, "response": "x", "context": [{"text": "a", "kind": "rumour"}]}',
        b'{"id": 1, "response": "x", "context": [{"text": "a", "source_id": "s"}, {"text": "b", "source_id": "s"}]}',
        b'{"id": 1, "response": "\\ud800"}',
        b'{"id": 1, "response": "\xff"}',
        b'{"id": 1, "response": "x", "extra": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id": 1, "response": "x"',
    ],
)
def test_a_bad_row_is_named_and_the_others_are_evaluated(bad: bytes) -> None:
    first, second, third = run(row(id="a"), bad, row(id="c"))

    assert isinstance(first, dict)
    assert isinstance(third, dict)
    assert (first["id"], third["id"]) == ("a", "c")
    assert isinstance(second, evaluate.BadRow)
    assert second.line == 2
    assert second.why


@pytest.mark.parametrize("batch", [1, 2, 3, 32])
def test_order_is_kept_whatever_the_batch(batch: int) -> None:
    found = run(*(row(id=n) if n % 3 else b"{" for n in range(10)), b"", row(id=10), batch=batch)

    assert [f["id"] if isinstance(f, dict) else f"line {f.line}" for f in found] == [
        "line 1", 1, 2, "line 4", 4, 5, "line 7", 7, 8, "line 10", 10,
    ]  # fmt: skip


def test_results_stream_before_the_input_ends() -> None:
    def lines() -> Any:
        for n in range(4):
            yield row(id=n)
        raise AssertionError("read ahead of the batch")

    stream = evaluate.evaluate(lines(), lexical(), batch=2)

    assert [found.id for found in (next(stream) for _ in range(4)) if isinstance(found, evaluate.Done)] == [
        0,
        1,
        2,
        3,
    ]


def test_nul_and_a_megabyte_are_ordinary_text() -> None:
    assert one(response="a\x00b is here now")["outcome"] == "ungrounded"
    assert one(response="word " * 200_000)["outcome"] in ("grounded", "ungrounded", "no_claims")


class TestCommand:
    """`aftercheck evaluate`."""

    @pytest.fixture
    def invoke(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.setenv("AFTERCHECK_EVALUATOR", "lexical-v1")
        settings.current.cache_clear()
        app = typer.Typer()
        command.register(app)
        app.callback()(lambda: None)

        def call(content: bytes, *arguments: str) -> tuple[int, str, list[dict[str, Any]]]:
            source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
            source.write_bytes(content)
            result = CliRunner().invoke(app, ["evaluate", str(source), "--out", str(out), *arguments])
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
            return result.exit_code, result.stderr, [json.loads(line) for line in out.read_text().splitlines()]

        return call

    def test_good_rows_exit_0(self, invoke: Any) -> None:
        code, _, rows = invoke(row() + b"\n" + row(id=2) + b"\n")

        assert (code, [r["id"] for r in rows]) == (0, ["r", 2])

    def test_bad_rows_exit_65_and_are_named(self, invoke: Any) -> None:
        code, errors, rows = invoke(row() + b"\n{\n" + row(id=2) + b"\n")

        assert (code, [r["id"] for r in rows]) == (65, ["r", 2])
        assert "line 2" in errors

    @pytest.mark.req("R34")
    @pytest.mark.parametrize(
        ("context", "gate", "code"),
        [(PASSAGE, "0.85", 0), ("unrelated words", "0.85", 1), (PASSAGE, "1", 0)],
    )
    def test_fail_under(self, invoke: Any, context: str, gate: str, code: int) -> None:
        assert invoke(row(context=context), "--fail-under", f"faithfulness={gate}")[0] == code

    @pytest.mark.req("R34", "P7")
    def test_fail_under_with_nothing_measured_fails(self, invoke: Any) -> None:
        code, errors, _ = invoke(row(response=""), "--fail-under", "faithfulness=0")

        assert code == 1
        assert "measured on no row" in errors

    @pytest.mark.parametrize("gate", ["accuracy=0.5", "faithfulness", "faithfulness=2", "faithfulness=nan"])
    def test_an_unknown_gate_is_refused(self, gate: str) -> None:
        with pytest.raises(UsageError, match="--fail-under"):
            command.parse_gate(gate)

    def test_json_summary(self, tmp_path: Path, invoke: Any) -> None:
        source = tmp_path / "s.jsonl"
        source.write_bytes(row() + b"\n" + row(response="") + b"\n")
        app = typer.Typer()
        command.register(app)
        app.callback()(lambda: None)

        result = CliRunner().invoke(app, ["evaluate", str(source), "--out", str(tmp_path / "o"), "--json"])
        found = json.loads(result.stdout)

        assert found["outcomes"] == {"grounded": 1, "not_assessable": 1}
        assert found["measured"]["faithfulness"] == 1
        assert found["quality"] == "smoke"
