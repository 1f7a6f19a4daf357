"""Confirmed corrections, kept as labels so that an erasure and retention reach them (R46)."""

from __future__ import annotations

from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction
from aftercheck_schemas.golden import GoldenCase
from aftercheck_worker.storage import scrub

STATUS: Final = "regression_case"


def interaction(connection: psycopg.Connection[TupleRow], tenant: str, evaluation_id: int) -> Interaction | None:
    """The stored interaction of a tenant's answer, None when it is unknown or its text is gone."""
    row = connection.execute(
        "SELECT body FROM ledger JOIN interaction USING (day, evaluation_id)"
        " WHERE tenant = %s AND evaluation_id = %s",
        (tenant, evaluation_id),
    ).fetchone()
    return None if row is None else msgspec.convert(row[0], Interaction)


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What the evaluator said of a claim, with its first evidence; "" where there was none."""

    text: str
    status: str
    source_id: str
    span: str


def claims(connection: psycopg.Connection[TupleRow], evaluation_id: int) -> list[Said]:
    """The verdicts on an answer's claims, those that are not supported first."""
    found = connection.execute(
        "SELECT c.text, v.status, coalesce(e.source_id, ''), coalesce(e.text, '')"
        " FROM ledger AS l JOIN claim AS c USING (day, evaluation_id)"
        " JOIN verdict AS v USING (day, evaluation_id, run_id, evaluator_version, claim_id)"
        " LEFT JOIN evidence AS e ON (e.day, e.evaluation_id, e.run_id, e.evaluator_version, e.claim_id, e.position)"
        " = (c.day, c.evaluation_id, c.run_id, c.evaluator_version, c.claim_id, 0)"
        " WHERE l.evaluation_id = %s AND c.run_id = 'online' ORDER BY v.status = 'supported', c.start",
        (evaluation_id,),
    )
    return [Said(text=row[0], status=row[1], source_id=row[2], span=row[3]) for row in found.fetchall()]


def keep(connection: psycopg.Connection[TupleRow], evaluation_id: int, case: GoldenCase) -> None:
    """Keep the reviewed case of an answer; a later review replaces it. The caller commits."""
    connection.execute("DELETE FROM label WHERE evaluation_id = %s AND status = %s", (evaluation_id, STATUS))
    connection.execute(
        "INSERT INTO label (evaluation_id, reviewer, status, note) VALUES (%s, %s, %s, %s)",
        (evaluation_id, scrub.text(case.reviewer), STATUS, scrub.encode(case).decode()),
    )


def cases(connection: psycopg.Connection[TupleRow], tenant: str) -> list[GoldenCase]:
    """All reviewed cases of a tenant, oldest first."""
    found = connection.execute(
        "SELECT note FROM label JOIN ledger USING (evaluation_id) WHERE tenant = %s AND status = %s ORDER BY id",
        (tenant, STATUS),
    )
    return [msgspec.json.decode(row[0], type=GoldenCase) for row in found.fetchall()]
