"""The real producer in a process of its own, and the intake: they agree on every byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_worker.settings import Settings
from tests.integration.intake.traffic import Sent, Traffic, intake, totals

pytestmark = pytest.mark.integration

APP = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import aftercheck
from opentelemetry import trace
aftercheck.init("shop", strict=True)
tracer = trace.get_tracer("opentelemetry.instrumentation.openai.v1")
ids = []
for number in range(3):
    with tracer.start_as_current_span("qa") as root:
        ids.append(aftercheck.current_trace_id())
        aftercheck.set_session("s1", turn=number + 1)
        aftercheck.record_context(["Paris is the capital of France."], source_id="doc")
        with tracer.start_as_current_span("openai.chat") as span:
            span.set_attribute("gen_ai.operation.name", "chat")
            span.set_attribute("gen_ai.request.model", "m")
            question = [{"role": "user", "parts": [{"type": "text", "content": "Capital of France?"}]}]
            said = {"parts": [{"type": "text", "content": "Paris."}], "finish_reason": "stop"}
            answer = [{"role": "assistant", **said}]
            span.set_attribute("gen_ai.input.messages", json.dumps(question))
            span.set_attribute("gen_ai.output.messages", json.dumps(answer))
aftercheck.feedback(ids[0], "down", comment="wrong", user="u")
left = aftercheck.flush(10).left
print(json.dumps([ids, left, aftercheck.stats().enqueued]))
"""


@pytest.mark.req("R1", "R6", "I2")
def test_spans_and_feedback_of_the_sdk(
    mine: Settings,
    traffic: Traffic,
    redis_url: str,
    connection: psycopg.Connection[TupleRow],
    sent: Sent,
) -> None:
    environ = {**os.environ, "REDIS_URL": redis_url, "AFTERCHECK_TENANT": mine.tenant}
    done = subprocess.run(
        [sys.executable, "-c", APP], env=environ, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    ids, left, enqueued = json.loads(done.stdout.splitlines()[-1])
    assert left == 0
    assert enqueued == 7  # what Redis acknowledged: two spans of each trace, and the feedback call
    assert traffic.left()[1] > 0

    with intake(mine, sent) as running:
        running.drain()

    rows = connection.execute(
        "SELECT trace_id, body ->> 'answer', body -> 'passages' -> 0 ->> 'text', body ->> 'session_id', state"
        " FROM ledger JOIN interaction USING (evaluation_id) WHERE tenant = %s",
        (mine.tenant,),
    ).fetchall()
    assert sorted(rows) == sorted((tid, "Paris.", "Paris is the capital of France.", "s1", "pending") for tid in ids)
    found = totals(connection, mine.tenant)
    assert (found["received"], found["entries.feedback"], found["sampled"]) == (4, 1, 3)  # nothing lost (I2)
    assert traffic.left() == (0, 0)
    words = connection.execute("SELECT trace_id, value FROM feedback WHERE tenant = %s", (mine.tenant,)).fetchall()
    assert words == [(ids[0], -1.0)]
