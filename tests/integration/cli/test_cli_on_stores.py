"""Commands over real Postgres and Valkey, in process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import psycopg
import pytest
import redis
from psycopg.rows import TupleRow

from aftercheck_schemas import wire
from aftercheck_worker.cli import application
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database, dead_letters, totals
from tests.integration.exporter import sessions

pytestmark = pytest.mark.integration

TRACE = "ab" * 16


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = application.run(words)
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture
def connection(settings: Settings) -> Iterator[psycopg.Connection[TupleRow]]:
    assert settings.database_url is not None
    with database.connect(settings.database_url.get_secret_value(), name="test") as found:
        found.autocommit = True
        yield found


@pytest.fixture
def letter(connection: psycopg.Connection[TupleRow], request: pytest.FixtureRequest) -> int:
    """A dead letter as the intake keeps it."""
    header = wire.EntryHeader(app="shop", trace_id=TRACE, root=True, size=9)
    flat = wire.encode_entry(header, b"")
    texts = [part if isinstance(part, str) else part.decode() for part in flat]
    number = dead_letters.add_entry(
        connection,
        "default",
        f"{abs(hash(request.node.name))}-0",
        "invalid_json",
        detail="line 1",
        trace_id=TRACE,
        app="shop",
        fields=dict(zip(texts[::2], texts[1::2], strict=True)),
        payload=b"not zlib!",
    )
    assert number is not None
    return number


@pytest.mark.req("U10")
def test_a_dead_letter_is_listed_shown_and_dropped(capsys: pytest.CaptureFixture[str], letter: int) -> None:
    _, listed, _ = run(capsys, "dlq", "list", "--json")
    assert letter in [found["id"] for found in json.loads(listed)]
    code, out, _ = run(capsys, "dlq", "show", str(letter))
    assert (code, "invalid_json" in out, "not zlib" in out) == (0, True, False)

    assert run(capsys, "dlq", "drop", str(letter))[0] == 0
    code, _, err = run(capsys, "dlq", "drop", str(letter))
    assert (code, "closed" in err) == (64, True)
    assert letter not in [found["id"] for found in json.loads(run(capsys, "dlq", "list", "--json")[1])]
    assert letter in [found["id"] for found in json.loads(run(capsys, "dlq", "list", "--all", "--json")[1])]


def test_a_retried_entry_is_on_the_stream_again_as_it_was(
    capsys: pytest.CaptureFixture[str], letter: int, redis_url: str
) -> None:
    code, out, _ = run(capsys, "dlq", "retry", str(letter), "--json")

    assert (code, json.loads(out)["id"]) == (0, letter)
    with redis.Redis.from_url(redis_url) as client:
        (entry,) = cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(wire.stream_key()))
        header, payload = wire.decode_entry(entry[1])
        client.delete(wire.stream_key())
    assert (header.app, header.trace_id, header.root, payload) == ("shop", TRACE, True, b"not zlib!")
    assert run(capsys, "dlq", "retry", str(letter))[0] == 64


def test_an_unknown_dead_letter_is_a_usage_error(capsys: pytest.CaptureFixture[str], settings: Settings) -> None:
    code, _, err = run(capsys, "dlq", "show", "999999")

    assert (code, "no dead letter 999999" in err) == (64, True)


@pytest.mark.req("R4")
def test_rates_are_set_versioned_and_listed(capsys: pytest.CaptureFixture[str], settings: Settings) -> None:
    first = json.loads(run(capsys, "sampling", "set", "shop", "0.2", "--json")[1])
    second = json.loads(run(capsys, "sampling", "set", "shop", "0.3", "--by", "session", "--json")[1])
    listed = json.loads(run(capsys, "sampling", "list", "--json")[1])

    assert second["version"] > first["version"]
    assert (listed["apps"]["shop"]["rate"], listed["apps"]["shop"]["mode"]) == (0.3, "session")
    assert (listed["apps"]["shop"]["recent"], listed["default"]) == (0.3, 0.05)
    assert "shop" in run(capsys, "sampling", "list")[1]


@pytest.mark.parametrize("words", [("shop", "5"), ("shop", "-- -1"), ("shop", "0.5", "--by", "moon")])
def test_an_impossible_rate_is_refused(
    capsys: pytest.CaptureFixture[str], settings: Settings, words: tuple[str, ...]
) -> None:
    assert run(capsys, "sampling", "set", *words)[0] in (2, 64)


@pytest.mark.req("U32")
def test_stats_show_the_funnel_and_say_why_it_is_empty(
    capsys: pytest.CaptureFixture[str], connection: psycopg.Connection[TupleRow]
) -> None:
    _, out, err = run(capsys, "stats", "--app", "nobody")
    assert "traces read" in out
    assert "No trace has arrived" in err

    totals.add(connection, "default", {totals.TotalKey(totals.UNSAMPLED, "shop"): 5.0})
    shown = json.loads(run(capsys, "stats", "--app", "shop", "--json")[1])
    assert (shown["funnel"]["traces"], shown["funnel"]["unsampled"]) == (5, 5)
    assert any("No trace was sampled" in hint for hint in shown["hints"])


@pytest.mark.req("U32")
def test_an_unknown_trace_says_why(capsys: pytest.CaptureFixture[str], settings: Settings) -> None:
    code, out, _ = run(capsys, "explain", "cd" * 16)

    assert (code, "Nothing is known" in out) == (1, True)


def test_a_dead_letter_explains_its_trace(capsys: pytest.CaptureFixture[str], letter: int) -> None:
    code, out, _ = run(capsys, "explain", TRACE)

    assert (code, "invalid_json" in out) == (0, True)


@pytest.mark.req("U14")
def test_the_doctor_is_content_with_healthy_stores(capsys: pytest.CaptureFixture[str], settings: Settings) -> None:
    code, out, _ = run(capsys, "doctor")

    assert code == 0
    assert "fail" not in [line.split()[0] for line in out.splitlines()]
    assert "schema" in out


@pytest.mark.req("U14", "F09")
def test_the_doctor_finds_a_redis_that_evicts(
    capsys: pytest.CaptureFixture[str], settings: Settings, redis_url: str
) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            code, out, _ = run(capsys, "doctor", "--json")
        finally:
            client.config_set("maxmemory-policy", "noeviction")

    (line,) = [line for line in json.loads(out) if line["check"] == "eviction"]
    assert (code, line["status"]) == (78, "fail")
    assert "noeviction" in line["fix"]


def test_an_old_schema_is_refused_with_the_command_that_mends_it(
    capsys: pytest.CaptureFixture[str], connection: psycopg.Connection[TupleRow]
) -> None:
    connection.execute("ALTER TABLE alembic_version RENAME TO hidden")
    try:
        code, _, err = run(capsys, "stats")
    finally:
        connection.execute("ALTER TABLE hidden RENAME TO alembic_version")

    assert (code, "aftercheck migrate" in err) == (78, True)


def test_migrate_says_that_there_is_nothing_to_do(capsys: pytest.CaptureFixture[str], settings: Settings) -> None:
    code, out, _ = run(capsys, "migrate", "--json")

    told = json.loads(out)
    assert (code, told["before"]) == (0, told["after"])


@pytest.mark.req("R30")
def test_fatigue_says_what_is_missing_and_writes_its_picture(
    capsys: pytest.CaptureFixture[str], settings: Settings, tmp_path: Path
) -> None:
    code, _, err = run(capsys, "fatigue", "--picture", str(tmp_path / "fatigue.svg"))

    assert (code, "Not enough sessions" in err) == (0, True)
    assert "Not enough sessions" in (tmp_path / "fatigue.svg").read_text("utf-8")
    assert run(capsys, "fatigue", "--picture", str(tmp_path / "nowhere" / "f.svg"))[0] == 65


@pytest.mark.req("R30")
def test_fatigue_reports_a_fall_as_a_pattern(
    capsys: pytest.CaptureFixture[str], connection: psycopg.Connection[TupleRow], tmp_path: Path
) -> None:
    sessions.write(connection, "tired", recorded=True)

    _, out, _ = run(capsys, "fatigue", "--app", "tired", "--json")
    found = {(one["measure"], one["against"]): one for one in json.loads(out)["slopes"]}
    assert found["faithfulness", "turn"]["slope"] == pytest.approx(-0.2)
    assert found["faithfulness", "turn"]["sessions"] == sessions.SESSIONS
    # Turn and context size grow together, so that neither can be told from the other.
    assert found["faithfulness", "turn"]["partial"] is None

    code, out, err = run(capsys, "fatigue", "--app", "tired", "--picture", str(tmp_path / "f.svg"))
    assert (code, "-0.2000" in out) == (0, True)
    assert "tired: faithfulness falls by 0.2 per turn" in err
    assert "A pattern, not a cause." in err
    assert (tmp_path / "f.svg").read_text("utf-8").count("<circle") > 10
    assert json.loads(run(capsys, "fatigue", "--app", "nobody", "--json")[1])["slopes"] == []
