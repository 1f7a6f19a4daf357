"""`aftercheck erase --user-id` reaches every copy: Postgres, unread, waiting and cold entries, dead letters."""

from __future__ import annotations

import json
import secrets
import zlib
from contextlib import closing
from typing import Any

import msgspec
import psycopg
import pytest
import redis

from aftercheck_schemas import Chunk, EntryHeader, Interaction, SpanRecord, encode_entry
from aftercheck_schemas.redaction import Redactor, default_key, user_hash
from aftercheck_schemas.sessions import STABLE_SCOPE
from aftercheck_schemas.wire import stream_key
from aftercheck_worker.cli import application
from aftercheck_worker.intake.record import digest_of, pack
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database, dead_letters, feedback, ledger

pytestmark = pytest.mark.integration

USER = "jan.kowalski@example.com"
KEY = default_key("shop")
NAMED = Redactor(KEY).redact(USER, STABLE_SCOPE)


def entry(trace_id: str, user: str) -> tuple[list[str | bytes], bytes]:
    span = SpanRecord(
        trace_id=trace_id,
        span_id="1" * 16,
        name="chat",
        start=1,
        end=2,
        attributes={"user.id": user, "text": "SENTINEL"},
    )
    document = msgspec.json.encode(Chunk(resource={}, spans=(span,)))
    payload = zlib.compress(document)
    header = EntryHeader(app="shop", trace_id=trace_id, root=True, size=len(document))
    return encode_entry(header, payload), payload


def record(trace_id: str, user: str) -> bytes:
    flat, payload = entry(trace_id, user)
    words = [part if isinstance(part, bytes) else part.encode() for part in flat]
    return pack(b"1-1", dict(zip(words[::2], words[1::2], strict=True)), digest_of(b"1-1", payload))


def fill(connection: psycopg.Connection[tuple[object, ...]], store: Any, user: str) -> dict[str, str]:
    """One trace of the user in every place that holds traces."""
    ids = {name: secrets.token_hex(16) for name in ("asked", "unread", "waiting", "cold", "letter")}
    body = Interaction(trace_id=ids["asked"], span_id="1" * 16, app="shop", answer="SENTINEL", user_id=user)
    new = ledger.NewAnswer(
        tenant="default", trace_id=body.trace_id, span_id=body.span_id, app="shop", body=msgspec.json.encode(body)
    )
    ledger.insert(connection, [new])
    thumb = feedback.Feedback(
        trace_id="9" * 31 + user[0].encode().hex()[-1], value=-1.0, user_hash=user_hash(KEY, USER)
    )
    feedback.put(connection, "default", thumb)
    dead_letters.add_entry(
        connection,
        "default",
        f"{secrets.randbelow(10**9)}-0",
        "poison",
        trace_id=ids["letter"],
        app="shop",
        payload=entry(ids["letter"], user)[1],
    )
    connection.commit()
    flat, _ = entry(ids["unread"], user)
    store.xadd(stream_key(), dict(zip(flat[::2], flat[1::2], strict=True)))
    prefix = "aftercheck:{default}:"
    held = record(ids["waiting"], user)
    store.hset(f"{prefix}t:{ids['waiting']}", held[:8], held)
    store.zadd(f"{prefix}due", {ids["waiting"]: 9e15})
    store.zadd(f"{prefix}cold", {"1000": 1000})
    store.hset(f"{prefix}cold:1000", ids["cold"], record(ids["cold"], user))
    return ids


@pytest.mark.req("S35")
def test_every_copy_of_a_users_traces_goes_and_no_other(
    capsys: pytest.CaptureFixture[str], settings: Settings, database_url: str, redis_url: str
) -> None:
    _ = settings  # puts both URLs into the environment
    store: Any = redis.Redis.from_url(redis_url)  # pyright: ignore[reportUnknownMemberType]
    with database.connect(database_url, name="test") as connection, closing(store):
        mine = fill(connection, store, NAMED)
        others = fill(connection, store, "somebody else")
        assert application.run(["erase", "--user-id", USER, "--yes", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert sorted(one["trace_id"] for one in told["traces"]) == sorted(mine.values())
        assert told["feedback"] >= 1
        left = connection.execute("SELECT trace_id FROM tombstone").fetchall()
        assert {row[0] for row in left} == set(mine.values())
        kept = connection.execute(
            "SELECT count(*) FROM interaction JOIN ledger USING (day, evaluation_id) WHERE trace_id = ANY(%s)",
            (list(others.values()),),
        ).fetchone()
        assert kept == (1,)
        unread = [fields[b"tid"].decode() for _, fields in store.xrange(stream_key())]
        assert others["unread"] in unread
        assert mine["unread"] not in unread
        assert store.exists(f"aftercheck:{{default}}:t:{mine['waiting']}") == 0
        assert store.exists(f"aftercheck:{{default}}:t:{others['waiting']}") == 1
        assert [name.decode() for name in store.hkeys("aftercheck:{default}:cold:1000")] == [others["cold"]]
        assert USER not in str(connection.execute("SELECT details::text FROM audit").fetchall())
    assert application.run(["erase", "--user-id", USER, "--yes"]) == 0
    assert "Erased 0 traces" in capsys.readouterr().err
    assert application.run(["erase", "--yes"]) == 64
