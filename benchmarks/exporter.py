"""The exporter over a million evaluations: what a scrape costs Prometheus, and what a refresh costs Postgres."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker import embedded, exporter
from aftercheck_worker.exporter.refresher import Refresher
from aftercheck_worker.settings import load
from aftercheck_worker.storage import database, migrate, totals

EVALUATIONS = 1_000_000
APPS = 40
SCRAPES = 50

_FILL = """
INSERT INTO evaluation (day, evaluation_id, evaluator_version, tenant, trace_id, span_id, app, environment, model,
                        evaluator, origin, weight, outcome, faithfulness, hallucinated, finalised_at)
SELECT current_date, n, repeat('0', 64), 'default', lpad(to_hex(n), 32, '0'), lpad(to_hex(n), 16, '0'),
       'app' || n %% %(apps)s, 'production', 'model' || n %% 3, 'engine', 'production', 20,
       CASE WHEN n %% 10 = 0 THEN 'ungrounded' ELSE 'grounded' END, CASE WHEN n %% 10 = 0 THEN 0.5 ELSE 1 END,
       n %% 10 = 0, now() - make_interval(secs => %(seconds)s::float8 * n / %(count)s)
FROM generate_series(1, %(count)s) AS n
"""
_LEDGER = """
INSERT INTO ledger (tenant, trace_id, span_id, day, app, state, weight, finalised_at)
SELECT tenant, trace_id, span_id, day, app, 'scored', weight, finalised_at FROM evaluation
"""


def run() -> dict[str, float]:
    """Measure.

    `exporter.scrape_ms_1m`: median of one HTTP scrape. `exporter.refresh_ms_1m`: one refresh from both stores, the
    million spread over a day. `exporter.refresh_window_ms_1m`: the same with the whole million inside the
    five-minute window (3,333 evaluations per second), the worst case.
    """
    with tempfile.TemporaryDirectory() as home, embedded.start(Path(home)) as services:
        if services.database_url is None or services.redis_url is None:
            raise RuntimeError("the embedded services did not start")
        migrate.upgrade(services.database_url)
        source = exporter.Source(
            database_url=services.database_url,
            redis_url=services.redis_url,
            broker_url=services.redis_url,
            tenant="default",
        )
        with database.connect(services.database_url, name="benchmark", statement_timeout=0) as connection:
            connection.autocommit = True
            _fill(connection, seconds=86_400.0)
            found = {"exporter.refresh_ms_1m": _refresh(source), **_scrape(source)}
            connection.execute("UPDATE evaluation SET finalised_at = now() - random() * interval '290 seconds'")
            connection.execute("VACUUM ANALYZE evaluation")
            found["exporter.refresh_window_ms_1m"] = _refresh(source)
    return found


def _fill(connection: psycopg.Connection[TupleRow], *, seconds: float) -> None:
    connection.execute(_FILL, {"apps": APPS, "count": EVALUATIONS, "seconds": seconds})
    connection.execute(_LEDGER)
    metrics = sorted(totals.METRICS - {totals.INTAKE_STAMP})
    increments = {
        totals.TotalKey(metric, f"app{app}", "production", f"model{model}", "", "engine", key=key): 1000.0
        for metric in metrics
        for app in range(APPS)
        for model in range(3)
        for key in (("a", "b", "c", "d") if metric in (totals.ANSWERS, totals.CLAIMS, totals.CLAIMS_TYPE) else ("",))
    }
    totals.add(connection, "default", increments)
    connection.execute("VACUUM ANALYZE")


def _refresh(source: exporter.Source) -> float:
    refresher = Refresher(source, seconds=5, stall_seconds=60, label_values=100)
    times: list[float] = []
    try:
        for _ in range(7):
            began = time.perf_counter()
            refresher.refresh()
            times.append(1000 * (time.perf_counter() - began))
            if not refresher.ready().ok:
                raise RuntimeError(f"the refresh failed: {refresher.ready().reasons}")
    finally:
        refresher.close()
    return statistics.median(times)


def _scrape(source: exporter.Source) -> dict[str, float]:
    settings = load({}).model_copy(update={"exporter_port": 0})
    stop, urls, ready = threading.Event(), list[str](), threading.Event()

    def told(url: str) -> None:
        urls.append(url)
        ready.set()

    thread = threading.Thread(target=exporter.run, args=(settings, source, stop), kwargs={"ready": told})
    thread.start()
    try:
        ready.wait(10)
        body = b""
        while b"aftercheck_faithfulness_ratio{" not in body:
            body = _get(urls[0])
            time.sleep(0.05)
        times: list[float] = []
        for _ in range(SCRAPES):
            began = time.perf_counter()
            body = _get(urls[0])
            times.append(1000 * (time.perf_counter() - began))
    finally:
        stop.set()
        thread.join(20)
    return {
        "exporter.scrape_ms_1m": statistics.median(times),
        "exporter.scrape_p95_ms_1m": sorted(times)[int(0.95 * SCRAPES)],
        "exporter.scrape_series": float(sum(line[:1] != b"#" for line in body.splitlines())),
    }


def _get(url: str) -> bytes:
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as response:
        return bytes(response.read())
