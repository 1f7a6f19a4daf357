"""A trace from the stream to the ledger."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_worker.settings import Settings
from tests.integration.intake.traffic import Sent, Traffic, intake, totals

pytestmark = pytest.mark.integration


def test_a_trace_reaches_the_ledger_and_the_queue(
    mine: Settings, traffic: Traffic, sent: Sent, connection: psycopg.Connection[TupleRow]
) -> None:
    tid = traffic.trace()

    with intake(mine, sent) as running:
        running.drain()

    rows = connection.execute(
        "SELECT evaluation_id, state, weight, origin, app FROM ledger WHERE tenant = %s AND trace_id = %s",
        (mine.tenant, tid),
    ).fetchall()
    assert [(row[1:]) for row in rows] == [("pending", 1.0, "production", "shop")]
    assert sent.messages == [([rows[0][0]], False)]
    assert traffic.left() == (0, 0)
    found = totals(connection, mine.tenant)
    assert found["received"] == found["entries.held"] == found["sampled"] == found["traces.answered"] == 1
