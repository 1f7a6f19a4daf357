"""The mark of a process that moves: a file whose time says when. Its supervisor's watchdog reads it (F35)."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


class Mark:
    """The file that says when its process last moved. Writing it costs a few microseconds and never fails.

    Args:
        path: None = nobody looks.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def born(self) -> None:
        """Say which process works now."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.write_text(str(os.getpid()))

    def moved(self) -> None:
        """Say that something was begun or finished."""
        if self._path is not None:
            try:
                os.utime(self._path)
            except OSError:
                self.born()
