"""The HTTP side: check, feedback, traces, OTLP receiver and the page at /ui (R5, R6, R32)."""

from __future__ import annotations

from aftercheck_worker.api.application import create
from aftercheck_worker.api.server import run

__all__ = ["create", "run"]
