"""Real Postgres and Valkey from wheels, for machines that have neither (architecture.md "Storage").

`identity` decides as whom they run, `postgres` and `valkey` start one server each, `services` shares them
between the commands of one home folder.
"""

from __future__ import annotations

from aftercheck_worker.embedded.services import Services, ensure, start

__all__ = ["Services", "ensure", "start"]
