"""Prometheus and Alertmanager with the shipped configuration, as `deploy/monitor.py` runs them."""

from __future__ import annotations

import contextlib
import time
import urllib.request
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import psutil

from deploy import monitor

START_SECONDS: Final = 120.0


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """Loopback ports of the chain."""

    exporter: int
    prometheus: int
    alertmanager: int

    @classmethod
    def free(cls) -> Ports:
        """Ports that nobody uses now."""
        exporter, prometheus, alertmanager = (monitor.free_port() for _ in range(3))
        return cls(exporter=exporter, prometheus=prometheus, alertmanager=alertmanager)


@contextlib.contextmanager
def running(home: Path, pagerduty: str, ports: Ports) -> Generator[Mapping[str, psutil.Process]]:
    """Run both until the block ends; configuration, data and logs are in `home`.

    Raises:
        SystemExit: there are no binaries, and apt-get cannot fetch them.
        TimeoutError: one does not become ready.
    """
    key = home / "pagerduty_routing_key"
    key.write_text(monitor.STAND_IN_KEY)
    scraped, alerted = f"127.0.0.1:{ports.exporter}", f"127.0.0.1:{ports.alertmanager}"
    (home / "prometheus.yml").write_text(monitor.prometheus_config(scraped, alerted))
    (home / "alertmanager.yml").write_text(monitor.alertmanager_config(key, pagerduty))
    numbers = {"prometheus": ports.prometheus, "alertmanager": ports.alertmanager}
    with monitor.servers(home, numbers) as started:
        yield {name: psutil.Process(process.pid) for name, process in started.items()}


def answers(url: str, *, log: Path | None = None, seconds: float = START_SECONDS) -> None:
    """Wait until `url` says 200.

    Raises:
        TimeoutError: it did not; the message ends with the log.
    """
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        if time.monotonic() > deadline:
            told = log.read_text("utf-8", "replace")[-2000:] if log is not None and log.exists() else ""
            raise TimeoutError(f"{url} does not answer\n{told}")
        time.sleep(0.2)
