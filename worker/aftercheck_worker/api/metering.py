"""The serving process's own registry of metrics."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry

registry: Final = CollectorRegistry()
