"""One training row, and its json form in the work folder (never in the repository)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """A claim with its evidence window and what is known about it.

    window: segment A, already cut. claim, question, previous: parts of segment B.
    support: 1 when the window supports the claim, else 0.
    contradiction: 1 or 0 where known for an unsupported claim, -1 where unknown or supported.
    pair: number shared by a negative and its label-preserving twin, -1 for a lone row.
    spans: character ranges of the claim known to be unsupported; None when spans are unknown.
    operator: the source set or the synthetic operator; `held` marks rows kept for calibration.
    """

    window: str
    claim: str
    support: int
    contradiction: int
    operator: str
    question: str = ""
    previous: str = ""
    pair: int = -1
    spans: list[tuple[int, int]] | None = None
    held: bool = False


def write_rows(path: Path, rows: Iterable[Row]) -> int:
    """Write gzip json lines; returns how many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=3) as out:
        for row in rows:
            out.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")
            count += 1
    return count


def read_rows(path: Path) -> Iterator[Row]:
    """Read rows back."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            value = json.loads(line)
            if value["spans"] is not None:
                value["spans"] = [(int(a), int(b)) for a, b in value["spans"]]
            yield Row(**value)
