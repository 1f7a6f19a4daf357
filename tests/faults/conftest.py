"""The intake's fixtures, for its faults."""

from __future__ import annotations

from tests.integration.intake.conftest import connection, mine, sent, traffic

__all__ = ["connection", "mine", "sent", "traffic"]
