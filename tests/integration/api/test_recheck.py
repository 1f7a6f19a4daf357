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
        again = connection.execute(
            "SELECT c.text, v.status, (SELECT count(*) FROM evidence AS e WHERE (e.day, e.evaluation_id, e.run_id)"
            " = (c.day, c.evaluation_id, c.run_id)) FROM claim AS c"
            " JOIN verdict AS v USING (day, evaluation_id, run_id, evaluator_version, claim_id)"
            " JOIN ledger AS l USING (day, evaluation_id) WHERE l.trace_id = %s AND c.run_id = %s",
            (trace_id, said["run_id"]),
        ).fetchall()
        assert [row[:2] for row in again] == [("Whales are fish.", "not_found")]
        assert again[0][2] >= 1
        assert connection.execute("SELECT metric, key, value FROM total ORDER BY 1, 2, app").fetchall() == before
    assert application.run(["recheck", "--since", "yesterday"]) == 64
