"""What waits is readable from outside, and an intake gives signs of life."""

from __future__ import annotations

import threading
import time

import pytest

from aftercheck_worker import intake as package
from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.exporter import queues
from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import Link
from aftercheck_worker.intake.loop import Intake
from aftercheck_worker.settings import Settings, load
from tests.integration.intake.traffic import Sent, Traffic, intake

pytestmark = pytest.mark.integration


def test_the_state_of_an_empty_tenant(mine: Settings, redis_url: str) -> None:
    link = Link(redis_url)

    state = package.stream_state(link, mine.tenant)

    link.close()
    assert (state.depth, state.bytes, state.due, state.cold_bytes) == (0, 0, 0, 0)
    assert (state.oldest_age_seconds, state.cold_horizon) == (None, None)


def test_depth_and_age_grow_until_an_intake_comes(mine: Settings, traffic: Traffic, redis_url: str) -> None:
    link = Link(redis_url)
    for _ in range(3):
        traffic.trace()

    before = package.stream_state(link, mine.tenant)
    with intake(mine) as running:
        running.drain()
    after = package.stream_state(link, mine.tenant)

    link.close()
    assert before.depth == 3
    assert before.bytes == traffic.left()[1] + before.bytes > 0
    assert before.oldest_age_seconds is not None
    assert 0 <= before.oldest_age_seconds < 30
    assert (after.depth, after.bytes, after.due) == (0, 0, 0)


@pytest.mark.req("P10")
def test_run_lives_visibly_and_ends_when_told(mine: Settings, traffic: Traffic, redis_url: str, sent: Sent) -> None:
    link, stop = Link(redis_url), threading.Event()
    thread = threading.Thread(target=package.run, args=(mine, stop, sent))
    thread.start()
    traffic.trace()
    deadline = time.monotonic() + 20
    while not (sent.ids and package.intakes(link, mine.tenant)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (name,) = package.intakes(link, mine.tenant)
    ttl = link.call("TTL", Keys(mine.tenant).heartbeat(name))
    stop.set()
    thread.join(20)

    assert not thread.is_alive()
    assert isinstance(ttl, int)
    assert 0 < ttl <= 15
    assert len(sent.ids) == 1
    assert link.call("XINFO", "CONSUMERS", Keys(mine.tenant).stream, "intake") == []
    link.close()


def test_the_exporter_reads_the_same_keys() -> None:
    keys = Keys("x")

    assert (queues.due_key("x"), queues.cold_key("x")) == (keys.due, keys.cold)


def test_without_services_it_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match="aftercheck up"):
        Intake(load({}), Sent())


def test_an_idle_intake_does_not_time_out(mine: Settings, redis_url: str) -> None:
    """The blocking read is shorter than the socket timeout: redis-py 8 would hang for a minute otherwise."""
    with intake(mine) as running:
        running.tick()
        started = time.monotonic()
        assert running.tick(500) is False

    assert time.monotonic() - started < 5
