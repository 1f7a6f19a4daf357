"""Old text goes in small transactions or whole partitions; scores stay longer, totals for ever (S36)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_worker.storage import database, dead_letters, explain, ledger, partitions, results, retention, totals

pytestmark = [pytest.mark.integration, pytest.mark.req("S36")]

Connection = psycopg.Connection[TupleRow]
TODAY = datetime.now(UTC).date()


def _finished(
    connection: Connection, claimed: Callable[..., Sequence[ledger.Work]], evaluate: Callable[..., results.Finished]
) -> ledger.Work:
    (work,) = claimed(app="kept")
    database.transaction(connection, lambda c: results.finalise(c, [evaluate(work)]))
    return work


def test_text_goes_scores_stay_totals_stay(
    connection: Connection,
    claimed: Callable[..., Sequence[ledger.Work]],
    evaluate: Callable[..., results.Finished],
) -> None:
    work = _finished(connection, claimed, evaluate)
    before = totals.read(connection)

    assert retention.sweep(connection, 30, today=TODAY + timedelta(days=30)).partitions == ()
    assert explain.explain(connection, "default", work.trace_id).answers[0].interaction is not None
    swept = retention.sweep(connection, 30, today=TODAY + timedelta(days=31))

    assert partitions.child("interaction", TODAY) in swept.partitions
    (answer,) = explain.explain(connection, "default", work.trace_id).answers
    assert answer.interaction is None
    assert answer.evaluations[0].faithfulness == 0.5
    assert answer.evaluations[0].claims == []
    assert totals.read(connection) == before

    retention.sweep(connection, 30, 365, today=TODAY + timedelta(days=366))
    assert explain.explain(connection, "default", work.trace_id).answers == []
    assert totals.read(connection) == before


def test_rows_of_the_default_child_go_in_small_batches(connect: Callable[[], Connection]) -> None:
    old = TODAY - timedelta(days=400)
    with connect() as connection, connect() as observer:
        connection.autocommit = True
        connection.execute(
            "INSERT INTO interaction (day, evaluation_id, body) SELECT %s, n, '{}' FROM generate_series(1, 250) AS n",
            (old,),
        )
        connection.execute(
            "CREATE TABLE deletes AS SELECT 0 AS n, pg_current_xact_id() AS transaction;"
            "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " INSERT INTO deletes SELECT count(*), pg_current_xact_id() FROM gone; RETURN NULL; END $$;"
            "CREATE TRIGGER noted AFTER DELETE ON interaction_pdefault REFERENCING OLD TABLE AS gone"
            " FOR EACH STATEMENT EXECUTE FUNCTION noted()"
        )

        swept = retention.sweep(connection, 30, batch=100)

        assert swept.rows == 250
        sizes = observer.execute("SELECT n FROM deletes WHERE n > 0 ORDER BY n").fetchall()
        assert sizes == [(50,), (100,), (100,)]
        distinct = observer.execute("SELECT count(DISTINCT transaction) FROM deletes WHERE n > 0").fetchone()
        assert distinct == (3,)


def test_a_partition_in_use_is_left_for_later(connect: Callable[[], Connection]) -> None:
    old = TODAY - timedelta(days=50)
    with connect() as connection, connect() as reader:
        connection.autocommit = True
        partitions.ensure(connection, [old])
        reader.execute("SELECT count(*) FROM interaction")

        busy = retention.sweep(connection, 30)
        assert partitions.child("interaction", old) in busy.busy
        reader.rollback()

        assert partitions.child("interaction", old) in retention.sweep(connection, 30).partitions


def test_comments_and_payloads_are_text(connection: Connection) -> None:
    connection.execute(
        "INSERT INTO feedback (tenant, trace_id, value, comment, created_at)"
        " VALUES ('t', 'old', -1, 'words', now() - interval '40 days'), ('t', 'new', -1, 'words', now())"
    )
    number = dead_letters.add_entry(connection, "t", "1-1", "too_large", payload=b"words", detail="words")
    assert number is not None
    connection.execute("UPDATE dead_letter SET created_at = now() - interval '40 days' WHERE id = %s", (number,))

    retention.sweep(connection, 30)

    comments = connection.execute("SELECT trace_id, comment FROM feedback WHERE tenant = 't' ORDER BY 1").fetchall()
    assert comments == [("new", "words"), ("old", None)]
    assert dead_letters.payload(connection, number) is None
    (letter,) = dead_letters.find(connection, "t")
    assert (letter.detail, letter.reason) == ("", "too_large")
