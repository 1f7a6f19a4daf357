"""Each CHECK constraint refuses what it names, tried one by one: a score is in [0, 1] or NULL, never NaN (P7)."""

from __future__ import annotations

from typing import Final

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import TupleRow
from sqlalchemy import CheckConstraint

from aftercheck_worker.storage import tables

pytestmark = [pytest.mark.integration, pytest.mark.req("P7")]

_KEY: Final[dict[str, object]] = {"day": "2026-01-01", "evaluation_id": 1, "evaluator_version": "v"}
_CLAIM: Final[dict[str, object]] = {**_KEY, "claim_id": "c1"}
GOOD: Final[dict[str, dict[str, object]]] = {
    "ledger": {"tenant": "t", "trace_id": "a", "span_id": "b", "day": "2026-01-01", "app": "x"},
    "evaluation": {
        **_KEY,
        "tenant": "t",
        "trace_id": "a",
        "span_id": "b",
        "app": "x",
        "evaluator": "e",
        "origin": "production",
        "weight": 1.0,
        "outcome": "grounded",
    },
    "claim": {**_CLAIM, "text": "t", "start": 0, "end": 1, "type": "fact", "severity": "low", "verifiable": True},
    "verdict": {**_CLAIM, "status": "supported", "confidence": 0.5, "decided_by": "verifier"},
    "evidence": {
        **_CLAIM,
        "position": 0,
        "source_id": "1",
        "kind": "context",
        "trust": 1.0,
        "start": 0,
        "end": 1,
        "text": "t",
        "score": 0.5,
    },
    "judgement": {**_KEY, "criterion": "faithfulness", "repeat": 0, "score": 0.5, "body": "{}"},
    "sampling": {"tenant": "t", "app": "x", "version": 1, "rate": 0.5},
    "total": {
        **dict.fromkeys(
            ("metric", "tenant", "app", "environment", "model", "prompt_version", "evaluator", "origin", "key"), ""
        ),
        "value": 1.0,
    },
}
_SCORES: Final = {
    "evaluation": ("faithfulness", "faithfulness_upper", "supported_probability", "risk", "risk_v2"),
    "verdict": ("confidence", "supported_probability"),
    "evidence": ("trust", "score"),
    "judgement": ("score",),
    "sampling": ("rate",),
}
_NUMBERS: Final = (float("nan"), float("inf"), float("-inf"))
BAD: Final[list[tuple[str, str, object]]] = [
    *[
        (table, column, value)
        for table, columns in _SCORES.items()
        for column in columns
        for value in (*_NUMBERS, -0.01, 1.01)
    ],
    *[("total", "value", value) for value in _NUMBERS],
    *[("ledger", "weight", value) for value in (*_NUMBERS, 0.0, -1.0)],
    ("ledger", "state", "done"),
    ("ledger", "origin", "elsewhere"),
    ("evaluation", "outcome", "good"),
    ("evaluation", "origin", "elsewhere"),
    ("claim", "type", "opinion"),
    ("claim", "start", -1),
    ("claim", "start", 2),
    ("verdict", "status", "maybe"),
    ("sampling", "mode", "dice"),
]


def _insert(connection: psycopg.Connection[TupleRow], table: str, row: dict[str, object]) -> None:
    connection.execute(
        sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, row)),
            sql.SQL(", ").join([sql.Placeholder()] * len(row)),
        ),
        list(row.values()),
    )


@pytest.mark.parametrize(("table", "column", "value"), BAD)
def test_refused(connection: psycopg.Connection[TupleRow], table: str, column: str, value: object) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        _insert(connection, table, {**GOOD[table], column: value})


@pytest.mark.parametrize("table", sorted(GOOD))
def test_the_row_is_taken_without_the_bad_value(connection: psycopg.Connection[TupleRow], table: str) -> None:
    _insert(connection, table, GOOD[table])
    for column in set(_SCORES.get(table, ())) - {"confidence", "trust", "rate", "risk", "risk_v2"}:
        if table != "evidence":
            connection.execute(sql.SQL("UPDATE {} SET {} = NULL").format(*map(sql.Identifier, (table, column))))


def test_every_constraint_is_tried() -> None:
    declared = {
        (table.name, str(constraint.name))
        for table in tables.metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, CheckConstraint)
    }
    tried = {(table, f"ck_{table}_{column}") for table, column, _ in BAD} | {("claim", "ck_claim_offsets")}

    assert declared - tried == set()
