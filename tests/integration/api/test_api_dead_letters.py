"""Dead letters from their page, and the health page's funnel."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import redis
from fastapi.testclient import TestClient

from aftercheck_schemas.wire import bytes_key, stream_key
from aftercheck_worker.storage import database, dead_letters, totals
from tests.integration.api.test_api_pages import logged_in

pytestmark = pytest.mark.integration

Client = Callable[..., TestClient]
Store = Callable[..., str]


def csrf(page: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found is not None
    return found[1]


@pytest.mark.req("U32")
def test_a_stream_entry_goes_back_as_it_was(client: Client, database_url: str, redis_url: str) -> None:
    with database.connect(database_url, name="test") as connection:
        number = dead_letters.add_entry(
            connection,
            "default",
            "7-1",
            "invalid_json",
            app="shop",
            fields={"v": "1", "app": "shop"},
            payload=b"\x00x",
        )
        connection.commit()
    app = logged_in(client("admin"))
    word = csrf(app.get("/ui/dlq").text)
    assert app.post(f"/ui/dlq/{number}/retry", content="csrf=no").status_code == 403
    assert app.post(f"/ui/dlq/{number}/retry", content=f"csrf={word}").status_code == 200
    with redis.Redis.from_url(redis_url) as valkey:  # pyright: ignore[reportUnknownMemberType]
        entries: Any = valkey.xrange(stream_key())
        ((_, fields),) = entries
        assert fields == {b"v": b"1", b"app": b"shop", b"p": b"\x00x"}
        valkey.delete(stream_key(), bytes_key())
    assert app.post(f"/ui/dlq/{number}/retry", content=f"csrf={word}").status_code == 409
    with database.connect(database_url, name="test") as connection:
        letter = dead_letters.get(connection, "default", number or 0)
    assert letter is not None
    assert letter.resolution == "retried"


@pytest.mark.req("S37", "U32")
def test_an_answer_is_pending_again_and_only_its_own_tenant_can_say_so(
    client: Client, store: Store, database_url: str
) -> None:
    trace_id = store()
    with database.connect(database_url, name="test") as connection:
        row = connection.execute(
            "UPDATE ledger SET state = 'dead_letter' WHERE trace_id = %s RETURNING evaluation_id", (trace_id,)
        ).fetchone()
        assert row is not None
        number = dead_letters.add_answer(connection, "default", row[0], trace_id, "shop", "poison")
        connection.commit()
    other, reader, app = (logged_in(client(*one, **two)) for one, two in (
        (("admin",), {"tenant": "other"}), (("read",), {}), (("admin",), {})
    ))  # fmt: skip
    for stranger, code in ((other, 409), (reader, 403)):
        word = csrf(stranger.get("/ui/dlq").text)
        assert stranger.post(f"/ui/dlq/{number}/retry", content=f"csrf={word}").status_code == code
        assert stranger.post(f"/ui/dlq/{number}/drop", content=f"csrf={word}").status_code == code
    word = csrf(app.get("/ui/dlq").text)
    assert app.post(f"/ui/dlq/{number}/retry", content=f"csrf={word}").status_code == 200
    with database.connect(database_url, name="test") as connection:
        found = connection.execute("SELECT state, solo FROM ledger WHERE trace_id = %s", (trace_id,)).fetchone()
    assert found == ("pending", True)


def test_a_dropped_letter_is_closed(client: Client, database_url: str) -> None:
    with database.connect(database_url, name="test") as connection:
        number = dead_letters.add_entry(connection, "default", "7-2", "invalid_json", payload=b"x")
        connection.commit()
    app = logged_in(client("admin"))
    word = csrf(app.get("/ui/dlq").text)
    assert app.post(f"/ui/dlq/{number}/drop", content=f"csrf={word}").status_code == 200
    with database.connect(database_url, name="test") as connection:
        assert dead_letters.payload(connection, number or 0) is None
    assert f"/ui/dlq/{number}/" not in app.get("/ui/dlq").text


@pytest.mark.req("U32", "I8")
def test_health_says_why_nothing_is_there_and_then_counts(client: Client, database_url: str) -> None:
    empty = logged_in(client("read", tenant="fresh"))
    assert "No trace has arrived: does the app call aftercheck.init" in empty.get("/ui/health").text
    with database.connect(database_url, name="test") as connection:
        key = totals.TotalKey(metric=totals.SAMPLED, app="funnel-app")
        totals.add(connection, "fresh", {key: 41.0})
        connection.commit()
    page = empty.get("/ui/health?app=funnel-app").text
    assert re.search(r"traces read</th><td class=\"num\">41<", page)
    assert "Sampled traces held no answer span" in page
