"""The fake endpoint of the side-by-side: a fault stays the fault that it was in each tool's own form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.judge.__main__ import Row, outcome
from benchmarks.judge.served import Case, for_deepeval, for_ragas, for_trulens

ROWS = (Path(__file__).parents[2] / "cases" / "judge_replies.jsonl").read_bytes().splitlines()
CASES = {case.id: case for case in (msgspec.json.decode(row, type=Case) for row in ROWS)}


def values(text: str, name: str, field: str) -> list[object]:
    read: dict[str, list[dict[str, Any]]] = json.loads(text)
    return [item[field] for item in read[name]]


def test_a_clean_reply_is_clean_in_every_form() -> None:
    case = CASES["jo-01"]

    assert values(for_ragas(case), "statements", "verdict") == [1, 0, 0]
    assert values(for_deepeval(case), "verdicts", "verdict") == ["yes", "borderline", "no"]
    assert [for_trulens(case, claim, structured=False)[-1] for claim in case.claims] == ["3", "0", "0"]


def test_faults_stay_faults() -> None:
    assert for_ragas(CASES["jo-02"]).startswith("```json\n{")
    assert for_deepeval(CASES["jo-03"]).endswith("}\nHope this helps!")
    with pytest.raises(json.JSONDecodeError, match="escape"):
        json.loads(for_ragas(CASES["jo-05"]))
    assert values(for_ragas(CASES["jo-07"]), "statements", "statement") == ["A is red"]
    assert for_trulens(CASES["jo-07"], "B is blue", structured=False) == ""
    assert values(for_ragas(CASES["jo-11"]), "statements", "verdict") == [-1]
    assert values(for_ragas(CASES["jo-15"]), "statements", "verdict") == [9]
    for name in ("jo-08", "jo-10", "jo-16", "jo-18", "jo-19"):
        assert {for_ragas(CASES[name]), for_deepeval(CASES[name])} == {CASES[name].raw}


@pytest.mark.parametrize(
    ("name", "score", "expected"),
    [
        ("jo-02", 1 / 3, "right"),
        ("jo-02", 1.0, "false one"),
        ("jo-02", 0.0, "false zero"),
        ("jo-02", None, "lost"),
        ("jo-05", float("nan"), "nan"),
        ("jo-07", 1.0, "false one"),
        ("jo-07", None, "right"),
        ("jo-08", float("nan"), "nan"),
        ("jo-11", 0.4, "wrong score"),
        ("jo-14", 1.0, "false one"),
        ("jo-14", 0.0, "right"),
    ],
)
def test_outcomes(name: str, score: float | None, expected: str) -> None:
    control = Row(peer="p", version="1", id="jo-01", score=1 / 3)
    row = Row(peer="p", version="1", id=name, score=score)

    assert outcome(row, list(CASES.values()), [control, row]) == expected
