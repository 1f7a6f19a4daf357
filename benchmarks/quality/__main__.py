"""`python -m benchmarks.quality --data FOLDER`: the table of every set, beside the floor."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from aftercheck_worker.evaluators import resolve
from aftercheck_worker.settings import current
from benchmarks.quality import floor, items, sample, table
from benchmarks.quality.protocol import Scored, set_score
from benchmarks.quality.runner import run

RESULTS = Path("benchmarks/results")


def main() -> int:
    """Score the sets and print the table; 78 when the data folder is not set."""
    arguments = _arguments()
    if arguments.data is None:
        print("The labelled sets are not set. Fix: --data FOLDER or AFTERCHECK_DATA=FOLDER", file=sys.stderr)
        return 78
    data = Path(arguments.data)
    evaluator = resolve(arguments.evaluator, current())
    chosen = {name: sample.by_context(items.read(data / "bench", name), arguments.rows) for name in arguments.sets}
    cut = floor.fit_threshold(data / "train")
    floors = {name: set_score(floor.score(rows, cut)) or 0.0 for name, rows in chosen.items()}
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = RESULTS / f"quality-{evaluator.name}-{evaluator.version[:12]}.jsonl.tmp"
    scored: dict[str, list[Scored]] = {}
    for name, rows in chosen.items():
        scored[name] = list(run(rows, evaluator, kept))
        print(f"{name}: {100 * (set_score(scored[name]) or 0):.1f}", file=sys.stderr)
    reports = table.reports_of(scored)
    text = table.markdown(reports, floors, f"{evaluator.name} {evaluator.version[:12]}")
    mean = {name: rows for name, rows in scored.items() if name in items.IN_MEAN}
    if mean:
        theirs = {name: floor.score(chosen[name], cut) for name in mean}
        value, low, high = table.gain(mean, theirs)
        text += f"\nMean gain over the floor: {value:+.1f} points (95 % {low:+.1f} to {high:+.1f})\n"
    print(text)
    (RESULTS / "quality.md").write_text(text, encoding="utf-8")
    (RESULTS / "quality.json").write_text(json.dumps(table.keys(reports, floors), indent=1) + "\n", encoding="utf-8")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality")
    parser.add_argument("--data", default=os.environ.get("AFTERCHECK_DATA"), help="folder with bench/ and train/")
    parser.add_argument("--rows", type=int, default=0, help="about this many rows per set; 0 takes all")
    parser.add_argument("--evaluator", default="default")
    parser.add_argument("--sets", nargs="*", default=[*items.IN_MEAN, "ragtruth_answer"])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
