"""What commands print: data on stdout (tables, or JSON with `--json`), words for humans on stderr (U10).

Rich honours NO_COLOR and prints no escape codes into a pipe. Text that came from a model is shown with its control
and bidirectional characters escaped, so that it cannot rewrite our own words.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

if TYPE_CHECKING:
    from rich.console import Console

# rich is imported where something is printed: a process that prints one line in its life does without its 3 MB.

Json = Annotated[bool, typer.Option("--json", help="Print data as JSON on stdout.")]

DASH: Final = "-"
"""Shown where nothing was measured; never 0."""


def data(*, width: int | None = None) -> Console:
    """Console of stdout. In a pipe the width is generous, so that no cell is cut."""
    from rich.console import Console

    wide = width or (None if sys.stdout.isatty() else 200)
    return Console(file=sys.stdout, width=wide, highlight=False, markup=False, emoji=False)


def humans() -> Console:
    """Console of stderr."""
    from rich.console import Console

    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(message: str, *, style: str = "") -> None:
    """Print a sentence for the human at the terminal."""
    from rich.text import Text

    humans().print(Text(message, style=style))


def error(message: str) -> None:
    """Print one error line."""
    from rich.text import Text

    humans().print(Text("error: ", style="bold red") + Text(" ".join(message.split())))


def as_json(value: object) -> None:
    """Print `value` as one JSON document with sorted keys."""
    encoded = msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2)
    sys.stdout.write(encoded.decode("utf-8", "replace") + "\n")
    sys.stdout.flush()


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
    """Print rows as a table on stdout. None is shown as a dash."""
    from rich.table import Table
    from rich.text import Text

    view = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        view.add_column(heading, overflow="fold")
    for row in rows:
        view.add_row(*(Text(cell(value)) for value in row))
    data().print(view)


def cell(value: object) -> str:
    """Text of one table cell."""
    if value is None:
        return DASH
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".") if value == value else DASH
    return visible(str(value))


def visible(text: str) -> str:
    """Return `text` with control, format and surrogate characters written as escapes; line breaks become spaces."""
    flat = " ".join(text.split())
    return "".join(
        char if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co") else f"\\u{ord(char):04x}" for char in flat
    )
