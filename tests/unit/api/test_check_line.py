"""The line before the model: who is admitted, and when the others shall come back."""

from __future__ import annotations

import pytest

from aftercheck_worker.api.checker import Line


def measured(line: Line, seconds: float) -> None:
    assert line.enter() is None
    line.leave(seconds)


@pytest.mark.req("R32", "S24")
def test_as_many_are_admitted_as_can_be_done_before_the_deadline() -> None:
    line = Line(most=100, seconds=1.0)
    measured(line, 0.1)
    admitted = [line.enter() for _ in range(12)]
    assert admitted[:10] == [None] * 10
    assert admitted[10] is not None
    assert admitted[10] >= 1  # an HTTP Retry-After of 0 would be a busy loop


def test_a_check_slower_than_its_deadline_is_still_tried_when_nobody_waits() -> None:
    line = Line(most=4, seconds=1.0)
    measured(line, 5.0)
    assert line.enter() is None  # the estimate can only mend when something runs
    assert line.enter() is not None


def test_the_cap_holds_before_anything_was_measured_and_places_come_back() -> None:
    line = Line(most=2, seconds=1.0)
    assert [line.enter() is None for _ in range(3)] == [True, True, False]
    line.leave(None)
    assert line.enter() is None


def test_the_estimate_follows_the_load() -> None:
    line = Line(most=100, seconds=1.0)
    measured(line, 0.01)
    for _ in range(40):
        measured(line, 0.5)
    assert [line.enter() is None for _ in range(3)] == [True, True, False]
