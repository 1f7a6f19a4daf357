"""The funnel adds up, and an empty one says why."""

from __future__ import annotations

import pytest

from aftercheck_worker import funnel
from aftercheck_worker.storage import totals
from aftercheck_worker.storage.totals import Total, TotalKey


def rows(*given: tuple[str, str, float], app: str = "shop") -> list[Total]:
    return [Total("default", TotalKey(metric, app, key=key), value) for metric, key, value in given]


FULL = rows(
    (totals.SAMPLED, "", 8),
    (totals.UNSAMPLED, "", 92),
    (totals.DROPPED, "buffer_full", 3),
    (totals.STATES, "scored", 5),
    (totals.STATES, "not_assessable", 1),
    (totals.ANSWERS_RAW, "grounded", 3),
    (totals.ANSWERS_RAW, "ungrounded", 1),
    (totals.LATE, "grounded", 1),
    (totals.NOT_ASSESSABLE, "no_content", 1),
    (totals.CLAIMS, "supported", 4),
)


@pytest.mark.req("I3")
def test_traces_and_answers_add_up() -> None:
    found = funnel.build(FULL, {"pending": 2})

    assert (found.traces, found.sampled, found.unsampled) == (100, 8, 92)
    assert found.answers == 8
    assert found.states == {"pending": 2, "scored": 5, "not_assessable": 1}
    assert found.outcomes == {"grounded": 4, "ungrounded": 1}
    assert ("- scored", 5, "4 grounded, 1 ungrounded") in funnel.lines(found)


def test_one_app_only() -> None:
    found = funnel.build([*FULL, *rows((totals.SAMPLED, "", 50), app="other")], {}, app="shop")

    assert found.sampled == 8


@pytest.mark.req("U32")
@pytest.mark.parametrize(
    ("given", "flying", "waiting", "words"),
    [
        ([], {}, 0, "No trace has arrived"),
        ([], {}, 7, "is an intake running"),
        (rows((totals.UNSAMPLED, "", 9)), {}, 0, "No trace was sampled"),
        (rows((totals.SAMPLED, "", 9)), {}, 0, "no answer span"),
        (rows((totals.SAMPLED, "", 9)), {"pending": 9}, 0, "is a worker running"),
        (FULL, {}, 0, "Content capture is off"),
    ],
)
def test_an_empty_or_leaking_funnel_says_why(
    given: list[Total], flying: dict[str, int], waiting: int, words: str
) -> None:
    hints = funnel.build(given, flying).hints(waiting=waiting)

    assert any(words in hint for hint in hints), hints


def test_a_healthy_funnel_says_nothing() -> None:
    healthy = rows((totals.SAMPLED, "", 9), (totals.STATES, "scored", 9))

    assert funnel.build(healthy, {}).hints(waiting=3) == []
