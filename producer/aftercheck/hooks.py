"""Hooks for servers whose workers end without running atexit handlers.

gunicorn (gunicorn.conf.py):
    from aftercheck.hooks import gunicorn_worker_exit as worker_exit

Celery:
    from aftercheck.hooks import connect_celery
    connect_celery()

A process that is ended by SIGTERM with the default handler runs nothing of Python; gunicorn, uvicorn and Celery
install handlers of their own. For a plain script: signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)).
"""

from __future__ import annotations

import importlib
from typing import Any

from aftercheck import _init


def gunicorn_worker_exit(server: object, worker: object) -> None:
    """Send what waits when a gunicorn worker ends; assign it to `worker_exit`."""
    del server, worker
    _init.flush(2.0)


def connect_celery() -> None:
    """Send what waits when a Celery pool process ends (it leaves by os._exit)."""
    signals: Any = importlib.import_module("celery.signals")
    signals.worker_process_shutdown.connect(_celery_shutdown, weak=False)


def _celery_shutdown(**_: object) -> None:
    _init.flush(2.0)
