"""Print built rows of each operator for reading by eye; the precision found goes into the model card.

python -m training.audit [--phase c] [--count 100] [--operator NAME] [--windows]
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from random import Random

from .row import Row, read_rows
from .settings import load_settings


def show(rows: list[Row], windows: bool) -> None:
    """A twin pair, or a lone row."""
    if windows:
        print(f"    A: {rows[0].window}")
    for row in sorted(rows, key=lambda r: -r.support):
        marked = [row.claim[a:b] for a, b in row.spans or []]
        sign = "+" if row.support else "-"
        print(f"  {sign} {row.claim}  {marked if marked else ''} {row.contradiction if not row.support else ''}")


def main() -> None:
    """Group the rows of a phase by operator and print a sample of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phase", default="c")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--operator")
    parser.add_argument("--windows", action="store_true")
    options = parser.parse_args()
    settings = load_settings()
    groups: dict[str, dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for number, row in enumerate(read_rows(settings.rows / f"{options.phase}.jsonl.gz")):
        if options.operator in (None, row.operator):
            groups[row.operator][row.pair if row.pair >= 0 else -2 - number].append(row)
    for name, pairs in sorted(groups.items()):
        print(f"== {name}: {len(pairs)}")
        for rows in Random(settings.seed).sample(list(pairs.values()), min(options.count, len(pairs))):
            show(rows, options.windows)


if __name__ == "__main__":
    main()
