"""The probes say no when something is lost or stands still, and only then."""

from __future__ import annotations

import pytest

from aftercheck_worker.exporter.health import Progress, Watch

REFRESH, STALL = 5.0, 60.0


def _watch() -> Watch:
    return Watch(now=0.0, refresh_seconds=REFRESH, stall_seconds=STALL)


def _moving(watch: Watch, now: float, *, waiting: int, mark: str) -> None:
    watch.refreshed(now, Progress(waiting=waiting, mark=(mark,)), ())


def test_before_the_first_refresh_it_is_live_and_not_ready() -> None:
    watch = _watch()

    assert watch.live(1.0).ok
    assert watch.ready(1.0).reasons == ("first refresh not done",)


@pytest.mark.req("I9")
def test_waiting_work_without_progress_is_neither_live_nor_ready() -> None:
    watch = _watch()
    for now in range(5, 120, 5):
        _moving(watch, now, waiting=3, mark="stuck")

    assert watch.live(64.0).ok
    assert not watch.live(120.0).ok
    health = watch.ready(120.0)
    assert not health.ok
    assert "no progress" in health.reasons[0]
    assert "3 items" in health.reasons[0]


@pytest.mark.req("I9")
def test_progress_or_an_empty_queue_keeps_it_live() -> None:
    moving, idle = _watch(), _watch()
    for now in range(5, 300, 5):
        _moving(moving, now, waiting=3, mark=str(now // 50))
        _moving(idle, now, waiting=0, mark="idle")

    assert moving.live(300.0).ok
    assert idle.live(300.0).ok
    assert idle.ready(300.0).ok


@pytest.mark.req("I9")
def test_a_lost_dependency_is_not_ready_but_live() -> None:
    watch = _watch()
    _moving(watch, 5.0, waiting=0, mark="a")
    watch.refreshed(10.0, None, ("postgres does not answer: OperationalError",))

    assert watch.ready(10.0).reasons == ("postgres does not answer: OperationalError",)
    assert watch.live(10.0).ok


def test_a_stall_is_not_counted_while_a_store_is_silent() -> None:
    watch = _watch()
    _moving(watch, 5.0, waiting=3, mark="a")
    for now in range(10, 200, 5):
        watch.refreshed(now, None, ("redis does not answer",))

    assert watch.live(200.0).ok


@pytest.mark.req("I9")
def test_a_refresher_that_hangs_is_seen() -> None:
    watch = _watch()
    _moving(watch, 5.0, waiting=0, mark="a")

    assert watch.ready(5.0 + REFRESH + 4).ok
    assert not watch.ready(5.0 + REFRESH + 6).ok
    assert watch.live(5.0 + REFRESH + 6).ok
    assert not watch.live(5.0 + REFRESH + 31).ok
