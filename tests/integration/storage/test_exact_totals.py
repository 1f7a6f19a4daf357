"""Totals equal rows whatever is delivered how often, in which order, on which of two connections at once (P6)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.rows import TupleRow

from aftercheck_worker.storage import database, ledger, results

pytestmark = [pytest.mark.integration, pytest.mark.req("P6", "F27", "I8")]

Connection = psycopg.Connection[TupleRow]

ROUNDS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 7), min_size=1, max_size=8),
        st.lists(st.integers(0, 7), min_size=1, max_size=8),
        st.sampled_from(["finalise", "fail", "solo"]),
    ),
    min_size=1,
    max_size=5,
)
_ROWS_AND_TOTALS = """
SELECT (SELECT count(*) FROM evaluation WHERE app = %(app)s),
       (SELECT count(*) FROM ledger WHERE app = %(app)s AND state = 'scored'),
       (SELECT coalesce(sum(value), 0) FROM total WHERE app = %(app)s AND metric = 'faithfulness_raw_count'),
       (SELECT coalesce(sum(value), 0) FROM total WHERE app = %(app)s AND metric = 'faithfulness_sum'),
       (SELECT coalesce(sum(weight * faithfulness), 0) FROM evaluation WHERE app = %(app)s),
       (SELECT coalesce(sum(value), 0) FROM total WHERE app = %(app)s AND metric = 'claims'),
       (SELECT count(*) FROM verdict JOIN evaluation USING (day, evaluation_id) WHERE app = %(app)s),
       (SELECT coalesce(sum(value), 0) FROM total WHERE app = %(app)s AND metric = 'failed'),
       (SELECT count(*) FROM ledger WHERE app = %(app)s AND state = 'failed'),
       (SELECT coalesce(sum(value), 0) FROM total WHERE app = %(app)s AND metric = 'states'),
       (SELECT count(*) FROM ledger WHERE app = %(app)s AND finalised_at IS NOT NULL)
"""
_apps = iter(range(1_000_000))


@given(rounds=ROUNDS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_totals_equal_rows(
    connect: Callable[[], Connection],
    answers: Callable[..., list[ledger.NewAnswer]],
    evaluate: Callable[..., results.Finished],
    rounds: Sequence[tuple[list[int], list[int], str]],
) -> None:
    app = f"exact-{next(_apps)}"
    with connect() as one, connect() as other, ThreadPoolExecutor(2) as pool:
        for connection in (one, other):
            connection.autocommit = True
        new = database.transaction(one, lambda c: ledger.insert(c, answers(8, app=app)))
        ids = [row.evaluation_id for row in new]
        for left, right, step in rounds:
            together = threading.Barrier(2)

            def deliver(connection: Connection, chosen: list[int], step: str, together: threading.Barrier) -> int:
                numbers = [ids[index] for index in chosen]
                works = database.transaction(connection, lambda c: ledger.claim(c, numbers))
                finished = [evaluate(work) for work in works]
                together.wait(10)
                if step == "solo":
                    database.transaction(connection, lambda c: ledger.mark_solo(c, numbers))
                if step == "fail" and connection is other:
                    return len(database.transaction(connection, lambda c: ledger.fail(c, numbers, "deadline")))
                return database.transaction(connection, lambda c: results.finalise(c, finished))

            jobs = [pool.submit(deliver, *pair, step, together) for pair in ((one, left), (other, right))]
            for job in jobs:
                job.result(20)

        row = one.execute(_ROWS_AND_TOTALS, {"app": app}).fetchone()
    assert row is not None
    evaluations, scored, raw, weighted, summed, claims, verdicts, failed, failed_rows, states, final = map(float, row)
    assert evaluations == scored == raw
    assert weighted == summed
    assert claims == verdicts == 2 * evaluations
    assert failed == failed_rows
    assert states == final == scored + failed
    delivered = {index for left, right, _ in rounds for index in (*left, *right)}
    assert final == len(delivered)
