"""The pages without a browser: sessions, roles, forms, alert links, runbooks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from aftercheck_worker.api.ui.session import inside

pytestmark = pytest.mark.integration

Client = Callable[..., TestClient]
Store = Callable[..., str]


def logged_in(app: TestClient, way: str = "/ui/traces") -> TestClient:
    word = str(app.headers.pop("Authorization")).removeprefix("Bearer ")
    reply = app.post("/ui/login", content=f"token={word}&next={way}", headers={"Origin": "null"})
    assert reply.status_code == 200, reply.text
    return app


@pytest.mark.req("S32", "S37")
def test_pages_need_a_session_of_a_reader(client: Client, store: Store) -> None:
    trace_id = store()
    app = client("read")
    away = app.get(f"/ui/traces/{trace_id}?claim=c1", headers={"Authorization": ""}, follow_redirects=False)
    assert away.headers["location"] == f"/ui/login?next=%2Fui%2Ftraces%2F{trace_id}%3Fclaim%3Dc1"
    assert app.post("/ui/login", content="token=ac_x_y", headers={"Origin": "null"}).status_code == 401
    page = logged_in(app).get(f"/ui/traces/{trace_id}")
    assert "includes support" in page.text
    assert "Erase" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    forged = str(app.cookies["aftercheck_session"])[:-1] + "x"
    app.cookies.clear()
    app.cookies.set("aftercheck_session", forged)
    assert app.get("/ui/traces", follow_redirects=False).status_code == 303
    other = logged_in(client("read", tenant="other"))
    assert other.get(f"/ui/traces/{trace_id}").status_code == 404
    with pytest.raises(AssertionError, match="403"):
        assert logged_in(client("check")) is None


@pytest.mark.req("S32")
@pytest.mark.parametrize(
    "way", ["https://evil.example", "//evil.example", "/ui/\\evil", "javascript:1", "/v1/traces"]
)
def test_a_login_leads_nowhere_else(way: str) -> None:
    assert inside(way) == "/ui/traces"


@pytest.mark.req("U30")
def test_the_shipped_alerts_link_leads_to_the_incident(client: Client, store: Store) -> None:
    trace_id = store(app="billing")
    app = logged_in(client("read"))
    page = app.get("/traces?app=billing&flagged=true&window=30m")
    assert page.url.path == "/ui/incidents"
    assert f"/ui/traces/{trace_id}" in page.text
    for window in ("", "x", "999999999d", "-5m", "0h"):
        assert app.get("/ui/incidents", params={"window": window, "start": "nan", "end": "9e99"}).status_code == 200


@pytest.mark.req("R54")
def test_runbooks_are_served_and_nothing_else(client: Client) -> None:
    app = client("check")
    assert "# FaithfulnessLow" in app.get("/docs/runbooks/FaithfulnessLow").text
    assert app.get("/docs/runbooks/NoSuchAlert").status_code == 404
    assert app.get("/docs/runbooks/..%2f..%2fREADME").status_code in (404, 422)
