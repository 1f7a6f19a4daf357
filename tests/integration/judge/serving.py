"""Serves an application on a free loopback port for the length of a block."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from starlette.applications import Starlette

from aftercheck_worker.judge.stub.server import run


@contextmanager
def serving(app: Starlette) -> Generator[str]:
    """Yield the base URL, which ends with /v1."""
    stop, up, urls = threading.Event(), threading.Event(), list[str]()

    def ready(url: str) -> None:
        urls.append(url)
        up.set()

    thread = threading.Thread(
        target=run, args=(app,), kwargs={"host": "127.0.0.1", "port": 0, "stop": stop, "ready": ready}
    )
    thread.start()
    assert up.wait(30)
    try:
        yield urls[0]
    finally:
        stop.set()
        thread.join(20)
