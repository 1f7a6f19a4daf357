"""The page on falling faithfulness, end to end and timed.

Real: apps with `aftercheck.init` and the `openai` client, Valkey, intake, Celery worker with the shipped verifier,
Postgres, exporter, Prometheus and Alertmanager with the shipped configuration and rules. Not real: the model that
the apps ask, and PagerDuty's endpoint, which refuses what PagerDuty refuses. Several apps drop at once: each is one
trial.

The history before the drop is `WARM_SECONDS`, not the 30 minutes of the long window. That makes nothing faster: the
5-minute window is full, and the long window holds a larger share of the drop when it comes to the resolve.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from aftercheck_worker import embedded
from aftercheck_worker.cli.children import Children
from aftercheck_worker.demo import scrape
from aftercheck_worker.storage import migrate
from benchmarks import _monitoring
from benchmarks._hallucinating_app import HALLUCINATING, HEALTHY, App
from benchmarks._pagerduty import Event, PagerDuty

KEYS: Final = ("alert.trigger_", "alert.resolve_", "alert.proof_")
ALERT: Final = "FaithfulnessLow"
APPS: Final = 3
PER_SECOND: Final = 1.0
WARM_SECONDS: Final = 300.0
TRIGGER_SECONDS: Final = 420.0
"""Longest wait; the bar is 210 at the median."""
RESOLVE_SECONDS: Final = 1200.0
KEPT_UP: Final = 0.8
"""Share of the answers of the last five minutes that must be evaluated before the drop: else the machine is too busy
to time anything, and a page that does not come would say nothing of the rule."""

Say = Callable[[str], None]


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What one app saw. Seconds from the drop to the page, and from the recovery to the resolve."""

    app: str
    trigger_s: float
    resolve_s: float
    dedup_key: str


def course(app: App, pager: PagerDuty, say: Say) -> Course:
    """Drop, wait for the page, recover, wait for the resolve of the same incident.

    Raises:
        TimeoutError: no page, or no resolve.
        RuntimeError: the app ended.
    """

    def ours(event: Event) -> bool:
        payload: dict[str, object] = event.body.get("payload", {})
        return (payload.get("class"), payload.get("component")) == (ALERT, app.name)

    app.quality, dropped = HALLUCINATING, time.monotonic()
    trigger = _wait(app, pager, "trigger", ours, TRIGGER_SECONDS)
    say(f"{app.name}: page {trigger.at - dropped:.0f} s after the drop: {trigger.body['payload']['summary']}")
    app.quality, mended = HEALTHY, time.monotonic()
    resolve = _wait(app, pager, "resolve", lambda event: event.dedup_key == trigger.dedup_key, RESOLVE_SECONDS)
    say(f"{app.name}: resolve {resolve.at - mended:.0f} s after the recovery, dedup_key {resolve.dedup_key[:12]}...")
    return Course(
        app=app.name,
        trigger_s=trigger.at - dropped,
        resolve_s=resolve.at - mended,
        dedup_key=trigger.dedup_key,
    )


def _wait(app: App, pager: PagerDuty, action: str, which: Callable[[Event], bool], seconds: float) -> Event:
    try:
        return pager.wait(action, seconds, which=which)
    except TimeoutError as error:
        raise TimeoutError(f"{app.name}: {error}; app: {app.failure or 'runs'}") from None


def prove(say: Say, *, apps: int = APPS, warm_s: float = WARM_SECONDS) -> tuple[list[Course], PagerDuty]:
    """Run the proof; return one course per app and everything that the pager received.

    Raises:
        TimeoutError: a page or a resolve did not come.
        RuntimeError: healthy traffic paged, PagerDuty refused an event, or the machine does not keep up.
    """
    ports = _monitoring.Ports.free()
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded.start(Path(folder) / "data") as services,
        PagerDuty() as pager,
    ):
        if services.database_url is None or services.redis_url is None:
            raise RuntimeError("the embedded services did not start")
        home = Path(folder)
        migrate.upgrade(services.database_url)
        environ = {
            **os.environ,
            "DATABASE_URL": services.database_url,
            "REDIS_URL": services.redis_url,
            "AFTERCHECK_HOME": str(home / "home"),
            "AFTERCHECK_EXPORTER_PORT": str(ports.exporter),
            "AFTERCHECK_SAMPLING_RATE": "1",
        }
        with (
            Children(environ, logs=home / "logs") as children,
            contextlib.ExitStack() as asking,
        ):
            for role in ("worker", "exporter"):
                children.start(role)
            _monitoring.answers(f"http://127.0.0.1:{ports.exporter}/readyz", log=home / "logs/exporter.log")
            asking.enter_context(_monitoring.running(home, pager.url, ports))
            say("worker, intake, exporter, Prometheus and Alertmanager run")
            named = [
                asking.enter_context(App(f"shop-{number}", environ, per_second=PER_SECOND, seed=number))
                for number in range(1, apps + 1)
            ]
            exporter = f"http://127.0.0.1:{ports.exporter}/metrics"
            return _timed(named, pager, children, say, warm_s, exporter), pager


def _kept_up(app: App, exporter: str, seconds: float) -> None:
    wanted = KEPT_UP * PER_SECOND * min(seconds, 300.0)
    found = scrape.gauges(exporter, app.name, ("aftercheck_window_evaluations",))
    if sum(found.values()) < wanted:
        raise RuntimeError(
            f"{app.name}: {sum(found.values()):.0f} answers evaluated in five minutes, {wanted:.0f} are needed: the"
            f" machine is too busy to time the page. App: {app.failure or 'runs'}"
        )


def _timed(
    apps: Sequence[App], pager: PagerDuty, children: Children, say: Say, warm_s: float, exporter: str
) -> list[Course]:
    say(f"{len(apps)} apps answer, {PER_SECOND:g} a second each, mean faithfulness .92, for {warm_s:.0f} s")
    time.sleep(warm_s)  # the history itself is what is waited for
    children.check()
    for app in apps:
        _kept_up(app, exporter, warm_s)
    if pager.events:
        raise RuntimeError(f"healthy traffic paged: {pager.events[0].body}")
    say("their models now hallucinate: mean .50")
    with ThreadPoolExecutor(len(apps)) as pool:
        running = [pool.submit(course, app, pager, say) for app in apps]
        found = [one.result() for one in running]
    if pager.refused:
        raise RuntimeError(f"PagerDuty refused {pager.refused}")
    if len({one.dedup_key for one in found}) != len(found):
        raise RuntimeError("two apps share an incident")
    return found


def run() -> dict[str, float]:
    """Run the proof, print its course to stderr, return medians over the apps."""
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", file=sys.stderr, flush=True)

    found, pager = prove(say)
    triggers, resolves = [one.trigger_s for one in found], [one.resolve_s for one in found]
    told = ", ".join(f"{event.action} {event.body.get('payload', {}).get('class', '')}" for event in pager.events)
    say(f"events: {told}; refused: {len(pager.refused)}")
    say(f"median of {len(found)}: trigger {statistics.median(triggers):.0f} s (bar 210), every incident resolved")
    return {
        "alert.trigger_s": statistics.median(triggers),
        "alert.trigger_max_s": max(triggers),
        "alert.resolve_s": statistics.median(resolves),
        "alert.resolve_max_s": max(resolves),
        "alert.proof_incidents": float(len(found)),
    }
