"""A recheck keeps a second verdict and moves nothing online."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest

from aftercheck_worker import settings as worker_settings
from aftercheck_worker.cli import application
from aftercheck_worker.settings import Settings

pytestmark = pytest.mark.integration

Store = Callable[..., str]


@pytest.mark.req("R53", "R54")
def test_answers_are_judged_again_beside_their_verdict(
    settings: Settings,  # sets the URLs
    store: Store,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace_id = store(app="again", model="m7", answer="Whales are fish.")
    store(app="other", model="m8")
    monkeypatch.setenv("AFTERCHECK_EVALUATOR", "lexical-v1")
    worker_settings.current.cache_clear()
    with psycopg.connect(database_url) as connection:
        before = connection.execute("SELECT metric, key, value FROM total ORDER BY 1, 2, app").fetchall()
    assert application.run(["recheck", "--since", "1h", "--model", "m7", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["checked"] == 1
    assert said["changed"] == [
        {"trace_id": trace_id, "span_id": trace_id[-16:], "before": "grounded", "after": "ungrounded"}
    ]
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT origin, outcome FROM evaluation WHERE trace_id = %s ORDER BY origin", (trace_id,)
        ).fetchall()
        assert rows == [("production", "grounded"), ("replay", "ungrounded")]
        assert connection.execute("SELECT metric, key, value FROM total ORDER BY 1, 2, app").fetchall() == before
    assert application.run(["recheck", "--since", "yesterday"]) == 64
