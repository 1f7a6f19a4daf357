"""The circuit breaker: when it opens, and how one probe closes it (F19)."""

from __future__ import annotations

import pytest

from aftercheck_worker.judge.breaker import IN_A_ROW, WINDOW, Breaker

pytestmark = pytest.mark.req("F19")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def record(breaker: Breaker, *answers: bool) -> None:
    for answered in answers:
        assert breaker.allows()
        breaker.record(answered=answered)


def test_it_opens_after_failures_in_a_row_and_lets_one_probe_through() -> None:
    clock = Clock()
    breaker = Breaker(pause=15, clock=clock)
    record(breaker, *[False] * IN_A_ROW)

    assert (breaker.state, breaker.allows()) == ("open", False)
    clock.now += 15
    assert breaker.state == "half_open"
    assert [breaker.allows(), breaker.allows()] == [True, False]

    breaker.record(answered=True)
    assert (breaker.state, breaker.allows()) == ("closed", True)


def test_a_failed_probe_opens_it_again() -> None:
    clock = Clock()
    breaker = Breaker(pause=15, clock=clock)
    record(breaker, *[False] * IN_A_ROW)
    clock.now += 15

    record(breaker, False)

    assert breaker.state == "open"


def test_half_of_the_last_twenty_is_enough() -> None:
    breaker = Breaker(clock=Clock())

    record(breaker, *[True, False] * (WINDOW // 2 - 1), True)
    before = breaker.state
    record(breaker, False)

    assert (before, breaker.state) == ("closed", "open")


def test_a_success_ends_the_row() -> None:
    breaker = Breaker(clock=Clock())

    for _ in range(3):
        record(breaker, *[False] * (IN_A_ROW - 1), *[True] * 2 * IN_A_ROW)

    assert breaker.state == "closed"


def test_a_probe_that_never_ran_leaves_room_for_the_next() -> None:
    clock = Clock()
    breaker = Breaker(pause=15, clock=clock)
    record(breaker, *[False] * IN_A_ROW)
    clock.now += 15

    assert breaker.allows()
    breaker.release()

    assert breaker.allows()
