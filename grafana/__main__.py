"""`python -m grafana`: write the dashboards. A test fails when a file is not what this writes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from grafana import render
from grafana.boards import DASHBOARDS

FOLDER: Final = Path(__file__).parent / "dashboards"


def files(pages: str = render.PAGES) -> dict[str, str]:
    """File name -> text."""
    return {f"{board.uid}.json": render.text(board, pages) for board in DASHBOARDS}


def main() -> None:
    """Write all dashboards."""
    parser = argparse.ArgumentParser(prog="python -m grafana", description=__doc__)
    parser.add_argument("--pages-url", default=render.PAGES, help="base URL of aftercheck's own pages")
    chosen = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in files(chosen.pages_url).items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
