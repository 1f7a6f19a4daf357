"""The exporter over real Postgres and Valkey: three counts agree, and a lost store is never a stale value."""

from __future__ import annotations

import itertools
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

import msgspec
import psycopg
import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction, wire
from aftercheck_schemas.evaluation import Claim, Evaluation, Verdict
from aftercheck_worker import exporter
from aftercheck_worker.exporter import queues
from aftercheck_worker.exporter.refresher import Refresher
from aftercheck_worker.exporter.server import Answers, bind
from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.judge import canaries
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database, evaluator, ledger, results, totals

pytestmark = pytest.mark.integration

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]
Store = Callable[..., None]
Refreshing = Callable[..., Refresher]
numbers = itertools.count(1)


def parse(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def value(samples: Samples, name: str, **labels: str) -> float | None:
    found = [number for pairs, number in samples.get(name, {}).items() if labels.items() <= dict(pairs).items()]
    assert len(found) < 2, f"{name} {labels}: {found}"
    return found[0] if found else None


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection[TupleRow]]:
    with database.connect(database_url, name="test") as found:
        found.autocommit = True
        yield found


@pytest.fixture
def store(connection: psycopg.Connection[TupleRow]) -> Store:
    """Writes finished answers of an app through the real ledger."""

    def write(
        app: str, *, faithfulness: float, hallucinated: bool = False, quality: str = "standard", **fields: object
    ) -> None:
        number = next(numbers)
        trace_id, span_id = f"{number:032x}", f"{number:016x}"
        answer = ledger.NewAnswer(
            tenant="default",
            trace_id=trace_id,
            span_id=span_id,
            app=app,
            answered_at=time.time_ns(),
            body=msgspec.json.encode(Interaction(trace_id=trace_id, span_id=span_id, app=app, answer="Yes.")),
        )
        answer = msgspec.structs.replace(answer, **fields)
        new = database.transaction(connection, lambda c: ledger.insert(c, [answer]))
        works = database.transaction(connection, lambda c: ledger.claim(c, [row.evaluation_id for row in new]))
        found = msgspec.convert(
            {
                "trace_id": trace_id,
                "span_id": span_id,
                "outcome": "grounded" if faithfulness == 1 else "ungrounded",
                "faithfulness": faithfulness,
                "hallucinated": hallucinated,
                "evaluator": "lexical-v1" if quality == "smoke" else "engine",
                "evaluator_version": "0" * 64 if quality == "smoke" else "1" * 64,
                "quality": quality,
            },
            Evaluation,
        )
        found = msgspec.structs.replace(
            found,
            claims=(Claim(id="c1", text="Yes.", start=0, end=4),),
            verdicts=(Verdict(claim_id="c1", status="not_found" if hallucinated else "supported", confidence=0.9),),
        )
        finished = [results.Finished(work=work, evaluation=found) for work in works]
        database.transaction(connection, lambda c: results.finalise(c, finished))

    for name, digit, quality in (("engine", "1", "standard"), ("lexical-v1", "0", "smoke")):
        evaluator.remember(connection, name=name, version=digit * 64, spec={"quality": quality})
    return write


@pytest.fixture
def source(database_url: str, redis_url: str) -> exporter.Source:
    return exporter.Source(database_url=database_url, redis_url=redis_url, broker_url=redis_url, tenant="default")


@pytest.fixture
def refresher() -> Iterator[Refreshing]:
    """Makes refreshers that are closed after the test."""
    made: list[Refresher] = []

    def make(source: exporter.Source, stall_seconds: float = 60) -> Refresher:
        made.append(Refresher(source, seconds=5, stall_seconds=stall_seconds, label_values=100))
        return made[-1]

    yield make
    for one in made:
        one.close()


def scrape(found: Refresher) -> Samples:
    found.refresh()
    return parse(found.page().plain.decode())


@pytest.mark.req("R26", "R27", "R53", "I8")
def test_gauges_and_counters_equal_the_rows(store: Store, source: exporter.Source, refresher: Refreshing) -> None:
    store("shop", faithfulness=1.0, weight=20.0)
    store("shop", faithfulness=0.5, hallucinated=True, weight=10.0)

    seen = scrape(refresher(source))

    assert value(seen, "aftercheck_faithfulness_ratio", app="shop") == pytest.approx((20 + 0.5 * 10) / 30)
    assert value(seen, "aftercheck_hallucination_ratio", app="shop") == pytest.approx(10 / 30)
    assert value(seen, "aftercheck_window_evaluations", app="shop") == 2
    assert value(seen, "aftercheck_faithfulness_sum", app="shop") == 25
    assert value(seen, "aftercheck_faithfulness_count", app="shop") == 30
    assert value(seen, "aftercheck_faithfulness_sumsq_total", app="shop") == 22.5
    assert value(seen, "aftercheck_faithfulness_raw_count", app="shop") == 2
    assert value(seen, "aftercheck_hallucinated_answers_raw_total", app="shop") == 1
    assert value(seen, "aftercheck_claims_total", app="shop", status="supported") == 1
    assert value(seen, "aftercheck_finished_answers_total", app="shop", state="scored") == 2
    assert value(seen, "aftercheck_exporter_up") == 1


@pytest.mark.req("R27", "P8")
def test_an_app_that_only_invents_has_sums_of_zero_and_not_none(
    store: Store, source: exporter.Source, refresher: Refreshing
) -> None:
    """Without its sum of squares the page on faithfulness has no bound, and would stay silent for the worst app."""
    store("liar", faithfulness=0.0, hallucinated=True)

    seen = scrape(refresher(source))

    for name in (
        "faithfulness_sum",
        "faithfulness_sumsq_total",
        "faithfulness_raw_sum",
        "faithfulness_raw_sumsq_total",
    ):
        assert value(seen, f"aftercheck_{name}", app="liar") == 0, name
    assert value(seen, "aftercheck_faithfulness_count", app="liar") == 1


@pytest.mark.req("R53")
@pytest.mark.parametrize("origin", ["replay", "forced", "check", "golden"])
def test_other_origins_have_counters_and_no_gauge(
    store: Store, source: exporter.Source, origin: str, refresher: Refreshing
) -> None:
    store(f"app-{origin}", faithfulness=0.5, origin=origin)

    seen = scrape(refresher(source))

    assert value(seen, "aftercheck_faithfulness_ratio", app=f"app-{origin}") is None
    assert value(seen, "aftercheck_window_evaluations", app=f"app-{origin}") is None
    assert value(seen, "aftercheck_faithfulness_raw_count", app=f"app-{origin}", origin=origin) == 1


@pytest.mark.req("R53")
def test_late_answers_are_in_no_alert_series(store: Store, source: exporter.Source, refresher: Refreshing) -> None:
    store("late", faithfulness=0.0, hallucinated=True, answered_at=time.time_ns() - 3600 * 10**9)

    seen = scrape(refresher(source))

    assert value(seen, "aftercheck_faithfulness_ratio", app="late") is None
    assert value(seen, "aftercheck_faithfulness_count", app="late") is None
    assert value(seen, "aftercheck_late_answers_total", app="late", outcome="ungrounded") == 1


@pytest.mark.req("R13")
def test_the_baseline_is_labelled_smoke(store: Store, source: exporter.Source, refresher: Refreshing) -> None:
    store("words", faithfulness=1.0, quality="smoke")

    seen = scrape(refresher(source))

    assert value(seen, "aftercheck_faithfulness_ratio", app="words", quality="smoke") == 1
    assert value(seen, "aftercheck_faithfulness_count", app="words", quality="smoke") == 1
    assert value(seen, "aftercheck_faithfulness_count", app="words", quality="standard") is None


def test_another_tenant_is_not_shown(
    store: Store, source: exporter.Source, connection: psycopg.Connection[TupleRow], refresher: Refreshing
) -> None:
    store("theirs", faithfulness=1.0, tenant="other")

    seen = scrape(refresher(source))

    shown = {dict(pairs).get("app") for series in seen.values() for pairs in series}
    assert not shown & {"theirs", "other"}
    assert connection.execute("SELECT count(*) FROM total WHERE app = 'theirs'").fetchone() != (0,)


def test_an_old_answer_leaves_the_window_and_stays_in_the_counters(
    store: Store, source: exporter.Source, connection: psycopg.Connection[TupleRow], refresher: Refreshing
) -> None:
    store("old", faithfulness=1.0)
    connection.execute("UPDATE evaluation SET finalised_at = now() - interval '301 seconds' WHERE app = 'old'")

    seen = scrape(refresher(source))

    assert value(seen, "aftercheck_faithfulness_ratio", app="old") is None
    assert value(seen, "aftercheck_faithfulness_count", app="old") == 1


def test_a_label_that_postgres_took_does_not_break_the_scrape(
    connection: psycopg.Connection[TupleRow], source: exporter.Source, refresher: Refreshing
) -> None:
    odd = 'a"b\\c\nd\u202e\u0007'
    totals.add(connection, "default", {totals.TotalKey(totals.ANSWERS, odd, key="grounded"): 1.0})

    seen = scrape(refresher(source))

    assert 1 in seen["aftercheck_answers_total"].values()


@pytest.mark.req("P8", "I9")
def test_a_lost_postgres_takes_its_series_away(store: Store, source: exporter.Source, refresher: Refreshing) -> None:
    store("gone", faithfulness=1.0)
    found = refresher(source)
    scrape(found)
    assert found.ready().ok

    broken = msgspec.structs.replace(source, database_url="postgresql://nobody@127.0.0.1:1/none")
    other = refresher(broken)
    seen = scrape(other)

    assert "aftercheck_faithfulness_ratio" not in seen
    assert "aftercheck_faithfulness_count" not in seen
    assert value(seen, "aftercheck_exporter_up") == 0
    assert not other.ready().ok
    assert other.live().ok


@pytest.mark.req("P8", "I9")
def test_a_connection_that_dies_is_opened_again(
    store: Store, source: exporter.Source, connection: psycopg.Connection[TupleRow], refresher: Refreshing
) -> None:
    store("again", faithfulness=1.0)
    found = refresher(source)
    assert value(scrape(found), "aftercheck_exporter_up") == 1
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'aftercheck-exporter'"
    )

    assert value(scrape(found), "aftercheck_exporter_up") == 0
    assert value(scrape(found), "aftercheck_exporter_up") == 1


@pytest.mark.req("I9")
def test_a_lost_redis_is_not_ready(source: exporter.Source, refresher: Refreshing) -> None:
    found = refresher(msgspec.structs.replace(source, redis_url="redis://127.0.0.1:1/0"))

    seen = scrape(found)

    assert "aftercheck_queue_depth" not in seen
    assert value(seen, "aftercheck_exporter_dependency_up", dependency="redis") == 0
    assert value(seen, "aftercheck_exporter_dependency_up", dependency="postgres") == 1
    assert "redis" in found.ready().reasons[0]


@pytest.mark.req("I9", "F35")
def test_entries_that_nobody_reads_are_a_stall(
    source: exporter.Source, redis_url: str, refresher: Refreshing
) -> None:
    header = wire.EntryHeader(app="shop", trace_id="a" * 32)
    fields = wire.encode_entry(header, b"x")
    with redis.Redis.from_url(redis_url) as client:
        client.xadd(wire.stream_key("default"), dict(zip(fields[::2], fields[1::2], strict=True)))
        found = refresher(source, stall_seconds=0.001)
        seen = scrape(found)
        time.sleep(0.01)
        found.refresh()

        assert value(seen, "aftercheck_queue_depth", queue="stream") == 1
        assert not found.live().ok
        assert "1 items wait" in found.live().reasons[0]

        client.delete(wire.stream_key("default"))
        found.refresh()
        assert found.live().ok


def test_key_names_are_those_of_the_intake() -> None:
    assert queues.due_key("t1") == Keys("t1").due
    assert queues.cold_key("t1") == Keys("t1").cold
    assert queues.canaries_key("t1") == canaries.outcomes_key("t1")


@pytest.mark.req("R26", "U40")
def test_the_process_serves_from_memory(settings: Settings, source: exporter.Source) -> None:
    stop, urls = threading.Event(), list[str]()
    ready = threading.Event()

    def told(url: str) -> None:
        urls.append(url)
        ready.set()

    quick = settings.model_copy(update={"exporter_port": 0, "exporter_refresh_seconds": 0.1})
    thread = threading.Thread(target=exporter.run, args=(quick, source, stop), kwargs={"ready": told})
    thread.start()
    try:
        assert ready.wait(10)
        until(lambda: get(urls[0] + "/readyz")[0] == 200)
        status, kind, body = get(urls[0] + "/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert value(parse(body), "aftercheck_exporter_up") == 1
        assert get(urls[0] + "/livez")[0] == 200
        assert json.loads(get(urls[0] + "/readyz")[2]) == {"ok": True, "reasons": []}
        assert get(urls[0] + "/elsewhere")[0] == 404
    finally:
        stop.set()
        thread.join(10)
    assert not thread.is_alive()


def get(url: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status, response.headers["Content-Type"], response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def until(done: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.req("R26")
def test_a_scrape_never_touches_postgres(
    source: exporter.Source, refresher: Refreshing, connection: psycopg.Connection[TupleRow]
) -> None:
    def last_query() -> object:
        rows = connection.execute(
            "SELECT pid, query_start FROM pg_stat_activity"
            " WHERE application_name = 'aftercheck-exporter' AND datname = current_database() ORDER BY pid"
        ).fetchall()
        assert len(rows) == 1
        return rows[0]

    found = refresher(source)
    found.refresh()
    server = bind("127.0.0.1", 0, Answers(metrics=found.page, live=found.live, ready=found.ready))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        before = last_query()
        for path in ("metrics", "livez", "readyz") * 5:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.server_address[1]}/{path}", timeout=5) as reply:
                assert reply.status == 200
        assert last_query() == before
        found.refresh()
        assert last_query() != before
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
