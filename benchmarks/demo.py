"""From the command to the first verdict on screen, with everything installed and no data of an earlier run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time


def run() -> dict[str, float]:
    """Measure `demo.first_verdict_s` (wall, from the start of the process) and `demo.total_s`."""
    with tempfile.TemporaryDirectory() as home:
        began = time.monotonic()
        first: float | None = None
        with subprocess.Popen(
            [sys.executable, "-m", "aftercheck_worker.cli", "demo"],
            env={**os.environ, "AFTERCHECK_HOME": home},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            told = ""
            for line in process.stderr or ():
                told += line
                if "first verdict:" in line:
                    first = time.monotonic() - began
        seconds = time.monotonic() - began
    if process.returncode or first is None:
        raise RuntimeError(f"the demo ended with {process.returncode}: {told[-500:]}")
    return {"demo.first_verdict_s": first, "demo.total_s": seconds}
