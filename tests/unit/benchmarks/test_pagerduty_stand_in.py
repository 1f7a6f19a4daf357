"""The stand-in for PagerDuty refuses what PagerDuty refuses, so that a proof with it means something."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from typing import Any

import pytest

from benchmarks._hallucinating_app import HALLUCINATING, HEALTHY, shape
from benchmarks._pagerduty import Event, PagerDuty, problems

KEY = "0" * 32
PAYLOAD = {"summary": "Answers of shop are less faithful", "source": "prometheus", "severity": "critical"}
TRIGGER: dict[str, Any] = {
    "routing_key": KEY,
    "event_action": "trigger",
    "dedup_key": "a",
    "payload": PAYLOAD,
    "links": [{"href": "http://localhost:8080/docs/runbooks/FaithfulnessLow", "text": "Runbook"}],
}


def send(pager: PagerDuty, body: object, path: str = "") -> int:
    request = urllib.request.Request(pager.url + path, json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.req("U42")
@pytest.mark.parametrize(
    ("change", "about"),
    [
        ({"routing_key": "short"}, "routing_key"),
        ({"event_action": "fire"}, "event_action"),
        ({"dedup_key": "x" * 256}, "dedup_key"),
        ({"event_action": "resolve", "dedup_key": ""}, "dedup_key"),
        ({"payload": PAYLOAD | {"severity": "page"}}, "severity"),
        ({"payload": PAYLOAD | {"severity": "high"}}, "severity"),
        ({"payload": PAYLOAD | {"summary": ""}}, "summary"),
        ({"payload": PAYLOAD | {"summary": "x" * 1025}}, "summary"),
        ({"payload": PAYLOAD | {"source": ""}}, "source"),
        ({"links": [{"text": "Runbook"}]}, "href"),
    ],
)
def test_it_says_what_is_wrong(change: dict[str, Any], about: str) -> None:
    found = problems(TRIGGER | change)

    assert len(found) == 1
    assert about in found[0]


def test_it_takes_a_trigger_and_the_resolve_of_the_same_key() -> None:
    resolve = {"routing_key": KEY, "event_action": "resolve", "dedup_key": "b"}
    with PagerDuty() as pager:
        assert send(pager, TRIGGER) == 202
        assert send(pager, TRIGGER | {"dedup_key": "b"}) == 202
        assert send(pager, TRIGGER | {"payload": PAYLOAD | {"severity": "page"}}) == 400
        assert send(pager, resolve) == 202

        assert [event.action for event in pager.events] == ["trigger", "trigger", "resolve"]
        assert len(pager.refused) == 1
        assert pager.wait("trigger", 5, which=lambda event: event.dedup_key == "b").dedup_key == "b"
        with pytest.raises(TimeoutError, match="no acknowledge"):
            pager.wait("acknowledge", 0.01)


def test_it_wakes_who_waits() -> None:
    got: list[Event] = []
    with PagerDuty() as pager:
        waiting = threading.Thread(target=lambda: got.append(pager.wait("trigger", 30)))
        waiting.start()
        assert send(pager, TRIGGER) == 202
        waiting.join(30)

    assert [event.body["payload"]["severity"] for event in got] == ["critical"]


@pytest.mark.parametrize(("mean", "sd"), [HEALTHY, HALLUCINATING])
def test_the_app_draws_its_answers_as_the_simulation_does(mean: float, sd: float) -> None:
    first, second = shape(mean, sd)
    whole = first + second

    assert first / whole == pytest.approx(mean)
    assert (first * second / (whole**2 * (whole + 1))) ** 0.5 == pytest.approx(sd)
