"""The exporter process: one refresher thread, one HTTP server, until it is told to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable

from aftercheck_worker.exporter.refresher import Refresher, Source
from aftercheck_worker.exporter.server import Answers, bind
from aftercheck_worker.settings import Settings


def run(
    settings: Settings, source: Source, stop: threading.Event, *, ready: Callable[[str], None] | None = None
) -> None:
    """Serve until `stop` is set.

    Args:
        settings: host, port, refresh and stall seconds, label values.
        source: where to read.
        stop: set it to end; the function returns within about a refresh.
        ready: called once with the base URL after the first refresh.

    Raises:
        ConfigurationError: the address cannot be bound.
    """
    refresher = Refresher(
        source,
        seconds=settings.exporter_refresh_seconds,
        stall_seconds=settings.exporter_stall_seconds,
        label_values=settings.label_values,
    )
    answers = Answers(metrics=refresher.page, live=refresher.live, ready=refresher.ready)
    server = bind(settings.exporter_host, settings.exporter_port, answers)
    host, port = server.server_address[:2]
    threads = [
        threading.Thread(target=refresher.run, args=(stop,), name="refresher", daemon=True),
        threading.Thread(target=refresher.patterns.run, args=(stop,), name="patterns", daemon=True),
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="http", daemon=True),
    ]
    for thread in threads:
        thread.start()
    if ready is not None:
        ready(f"http://{host!s}:{port}")
    stop.wait()
    server.shutdown()
    server.server_close()
    for thread in threads:
        thread.join(timeout=10)
