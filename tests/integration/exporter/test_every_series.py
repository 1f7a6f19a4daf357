"""Every metric of the catalogue stands in a live scrape, hence every series that rules and dashboards read does."""

from __future__ import annotations

import time

import psycopg
import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families
from psycopg.rows import TupleRow

from aftercheck_schemas import wire
from aftercheck_worker import exporter
from aftercheck_worker.exporter import metrics, queues
from aftercheck_worker.exporter.refresher import Refresher
from aftercheck_worker.storage import database, dead_letters, evaluator, ledger, totals
from tests.integration.exporter.sessions import write

pytestmark = pytest.mark.integration

NEW = ledger.NewAnswer(tenant="default", trace_id="f" * 32, span_id="f" * 16, app="shop", body=b"{}")


@pytest.mark.req("U41", "U44")
def test_every_metric_is_in_a_live_scrape(database_url: str, redis_url: str) -> None:
    with database.connect(database_url, name="test") as connection:
        connection.autocommit = True
        evaluator.remember(connection, name="engine", version="1" * 64, spec={"quality": "standard"})
        write(connection, "shop", recorded=True)
        every = totals.METRICS - {totals.INTAKE_STAMP}
        counted = {totals.TotalKey(name, "shop", evaluator="engine", key="k"): 1.0 for name in every}
        database.transaction(connection, lambda c: totals.add(c, "default", counted))
        database.transaction(connection, lambda c: ledger.insert(c, [NEW]))
        _judged(connection)
        dead_letters.add_entry(connection, "default", "1-0", "invalid_json", app="shop")
    with redis.Redis.from_url(redis_url) as client:
        header = wire.EntryHeader(app="shop", trace_id="e" * 32, root=True, size=1)
        client.execute_command("XADD", wire.stream_key(), "*", *wire.encode_entry(header, b"x"))
        client.lpush(queues.canaries_key("default"), *[b"1"] * 50)
        client.zadd(queues.cold_key("default"), {"bucket": time.time() * 1000 - 5000})
    source = exporter.Source(database_url=database_url, redis_url=redis_url, broker_url=redis_url, tenant="default")
    refresher = Refresher(source, seconds=5, stall_seconds=60, label_values=100)
    assert refresher.patterns.read()
    refresher.refresh()
    refresher.close()

    families = text_string_to_metric_families(refresher.page().plain.decode())
    seen = {sample.name for family in families for sample in family.samples}
    wanted: set[str] = set()
    for metric in metrics.ALL:
        summary = {f"{metric.full_name}_sum", f"{metric.full_name}_count"}
        wanted |= summary if metric.kind == "summary" else {metric.full_name}
    assert wanted - seen == set()


def _judged(connection: psycopg.Connection[TupleRow]) -> None:
    """Let one answer of the window be judged, and another one wait for the judge."""
    row = connection.execute(
        "UPDATE evaluation SET finalised_at = now(), details = coalesce(details, '{}')"
        """ || '{"judge": {"why": "band", "audit": false, "probability": 1.0, "verifier": 0.5}}'"""
        " WHERE (day, evaluation_id) = (SELECT day, evaluation_id FROM evaluation WHERE outcome = 'grounded' LIMIT 1)"
        " RETURNING day, evaluation_id, evaluator_version"
    ).fetchone()
    assert row is not None
    for criterion in ("faithfulness", "context_relevance", "answer_relevance"):
        connection.execute(
            "INSERT INTO judgement (day, evaluation_id, run_id, evaluator_version, criterion, repeat, score, body)"
            " VALUES (%s, %s, 'online', %s, %s, 0, 0.5, '{}')",
            (*row, criterion),
        )
    connection.execute("UPDATE ledger SET state = 'judging' WHERE trace_id = %s", (NEW.trace_id,))
