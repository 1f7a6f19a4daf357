"""The fleet: intake, Celery workers, exporter, API and command line."""

from __future__ import annotations
