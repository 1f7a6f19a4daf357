"""Memory of the chain that pages, idle: exporter, Prometheus and Alertmanager with the shipped configuration.

Resident memory in MB (10^6 bytes), each process whole: pages of its binary that others map too are counted here too.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Final

import psutil

from aftercheck_worker import embedded
from aftercheck_worker.cli.children import Children
from aftercheck_worker.storage import migrate
from benchmarks import _monitoring
from benchmarks._pagerduty import PagerDuty

KEYS: Final = ("alert.chain_idle_", "alert.idle_")
SETTLE_SECONDS: Final = 90.0
"""A dozen scrapes, and some runs of the garbage collectors."""


def run() -> dict[str, float]:
    """Start the chain on an empty fleet, let it settle, weigh it."""
    ports = _monitoring.Ports.free()
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded.start(Path(folder) / "data") as services,
        PagerDuty() as pager,
    ):
        if services.database_url is None or services.redis_url is None:
            raise RuntimeError("the embedded services did not start")
        migrate.upgrade(services.database_url)
        home = Path(folder)
        environ = {
            **os.environ,
            "DATABASE_URL": services.database_url,
            "REDIS_URL": services.redis_url,
            "AFTERCHECK_HOME": str(home / "home"),
            "AFTERCHECK_EXPORTER_PORT": str(ports.exporter),
        }
        with Children(environ, logs=home / "logs") as children:
            children.start("exporter")
            _monitoring.answers(f"http://127.0.0.1:{ports.exporter}/readyz", log=home / "logs/exporter.log")
            with _monitoring.running(home, pager.url, ports) as processes:
                exporter = next(child for child in psutil.Process().children() if "exporter" in child.cmdline())
                time.sleep(SETTLE_SECONDS)
                weighed = {
                    name: process.memory_info().rss / 1e6
                    for name, process in {"exporter": exporter, **processes}.items()
                }
                children.check()
    return {
        "alert.chain_idle_mb": sum(weighed.values()),
        **{f"alert.idle_{name}_mb": megabytes for name, megabytes in weighed.items()},
    }
