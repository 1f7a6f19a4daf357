"""The command line. `aftercheck.command:main` of the base package calls `main` when the `worker` extra is there."""

from __future__ import annotations

from aftercheck_worker.cli.application import build, main

__all__ = ("build", "main")
