"""`python -m training`: build the rows, train (resuming where a checkpoint stands), export, calibrate."""

from __future__ import annotations

from pathlib import Path

from . import build, export, train
from .settings import load_settings


def main() -> None:
    """The whole recipe; every step keeps what an earlier call has finished."""
    settings = load_settings()
    settings.rows.mkdir(parents=True, exist_ok=True)
    missing = [phase.name for phase in train.PLAN if not (settings.rows / f"{phase.name}.npz").exists()]
    if missing:
        build.build(settings, missing)
    final: Path = settings.work / "final-average.pt"
    if not final.exists():
        train.main()
    folder = settings.work / export.NAME
    export.export(final, folder)
    print(f"exported to {folder}; next: python -m training.calibrate, .gates, .bench_quick")


if __name__ == "__main__":
    main()
