"""Settings of a training run, all from the environment; no path is written into the code."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a run reads and writes.

    data: folder with `train/*.jsonl.gz` and, for measuring only, `bench/*.jsonl.gz` (AFTERCHECK_DATA).
    work: checkpoints, built rows, logs (AFTERCHECK_TRAIN_DIR).
    threads: intra-op threads of torch (AFTERCHECK_TRAIN_THREADS).
    seed: seed of data building and of batch order (AFTERCHECK_TRAIN_SEED).
    """

    data: Path
    work: Path
    threads: int
    seed: int

    @property
    def rows(self) -> Path:
        """Folder of the built rows, one file per phase."""
        return self.work / "rows"

    @property
    def checkpoint(self) -> Path:
        """The resumable state of the run."""
        return self.work / "checkpoint.pt"

    @property
    def decay_now(self) -> Path:
        """A file whose existence starts the learning-rate decay at once."""
        return self.work / "decay-now"


def _folder(name: str) -> Path:
    value = os.environ.get(name)
    if not value:
        raise SystemExit(f"set {name} to a folder")
    return Path(value)


def load_settings() -> Settings:
    """Read the settings; stop with a clear message where a folder is missing."""
    return Settings(
        data=_folder("AFTERCHECK_DATA"),
        work=_folder("AFTERCHECK_TRAIN_DIR"),
        threads=int(os.environ.get("AFTERCHECK_TRAIN_THREADS", "2")),
        seed=int(os.environ.get("AFTERCHECK_TRAIN_SEED", "17")),
    )
