"""Console script `aftercheck`: the worker's command line where it is installed, else how to install it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

EX_CONFIG = 78
_WORKER_CLI = "aftercheck_worker.cli"
_NEEDS = ("typer", "celery", "sqlalchemy")


def main() -> None:
    """Run the command line; exit 78 with the install line when its libraries are missing."""
    if not _worker_installed():
        sys.stderr.write(
            "aftercheck: this is the light producer; its commands need the worker's libraries. "
            "Run: pip install 'aftercheck[worker]'\n"
        )
        raise SystemExit(EX_CONFIG)
    cli: Any = importlib.import_module(_WORKER_CLI)
    cli.main()


def _worker_installed() -> bool:
    try:
        return all(importlib.util.find_spec(name) is not None for name in (_WORKER_CLI, *_NEEDS))
    except ModuleNotFoundError:
        return False
