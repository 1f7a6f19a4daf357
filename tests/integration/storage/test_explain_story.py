"""`explain` has a sentence for every answer without a verdict (R5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_schemas.vocabulary import NOT_ASSESSABLE_REASONS
from aftercheck_worker.storage import dead_letters, explain, ledger

pytestmark = [pytest.mark.integration, pytest.mark.req("R5")]

Connection = psycopg.Connection[TupleRow]
Claimed = Callable[..., Sequence[ledger.Work]]


def _why(connection: Connection, trace_id: str) -> str:
    (answer,) = explain.explain(connection, "default", trace_id).answers
    return answer.why


def test_states_without_a_verdict(connection: Connection, claimed: Claimed) -> None:
    checked, failed, dead, waiting = claimed(4)
    ledger.fail(connection, [failed.evaluation_id], "too_large")
    ledger.dead_letter(connection, dead.evaluation_id, "crash_loop")
    ledger.release(connection, [waiting.evaluation_id])

    assert "attempt 1" in _why(connection, checked.trace_id)
    assert "too large" in _why(connection, failed.trace_id)
    assert "dlq" in _why(connection, dead.trace_id)
    assert "waits for a worker" in _why(connection, waiting.trace_id)


@pytest.mark.parametrize("reason", NOT_ASSESSABLE_REASONS)
def test_every_reason_has_words(
    connection: Connection, answers: Callable[..., list[ledger.NewAnswer]], reason: str
) -> None:
    (answer,) = answers(state="not_assessable", reason=reason)
    ledger.insert(connection, [answer])

    why = _why(connection, answer.trace_id)

    assert why.startswith("It cannot be judged: ")
    assert reason not in why


def test_unknown_unreadable_and_erased_traces(connection: Connection) -> None:
    dead_letters.add_entry(connection, "default", "5-0", "too_deep", trace_id="unreadable")
    connection.execute("INSERT INTO tombstone (tenant, trace_id, receipt) VALUES ('default', 'erased', '{}')")

    assert "not sampled" in explain.explain(connection, "default", "unknown").why
    assert "too_deep" in explain.explain(connection, "default", "unreadable").why
    assert "erased" in explain.explain(connection, "default", "erased").why


def test_a_story_becomes_json_with_its_feedback(connection: Connection, claimed: Claimed) -> None:
    (work,) = claimed()
    connection.execute(
        "INSERT INTO feedback (tenant, trace_id, value, comment) VALUES ('default', %s, -1, 'wrong')",
        (work.trace_id,),
    )

    story = msgspec.json.decode(msgspec.json.encode(explain.explain(connection, "default", work.trace_id)))

    assert story["feedback"][0]["comment"] == "wrong"
    assert story["answers"][0]["interaction"]["answer"].startswith("The plan")


def test_another_tenant_sees_nothing(connection: Connection, claimed: Claimed) -> None:
    (work,) = claimed()

    assert explain.explain(connection, "other", work.trace_id).answers == []


def test_dead_letters_keep_an_entry_once_and_large_payloads_by_hash(connection: Connection) -> None:
    big = b"x" * (dead_letters.MAX_PAYLOAD_BYTES + 1)

    first = dead_letters.add_entry(connection, "dlq", "9-9", "too_large", fields={"a\0": "b\ud800"}, payload=big)
    again = dead_letters.add_entry(connection, "dlq", "9-9", "too_large")

    assert first is not None
    assert again is None
    (letter,) = dead_letters.find(connection, "dlq")
    assert letter.payload_bytes == 0
    assert len(letter.payload_sha256) == 64
    assert letter.fields == {"a\ufffd": "b\ufffd", "payload_bytes": str(len(big))}
    assert dead_letters.payload(connection, first) is None
    assert dead_letters.resolve(connection, first, "dropped")
    assert not dead_letters.resolve(connection, first, "dropped")
    assert dead_letters.find(connection, "dlq") == []
    assert dead_letters.find(connection, "dlq", open_only=False)[0].resolution == "dropped"
