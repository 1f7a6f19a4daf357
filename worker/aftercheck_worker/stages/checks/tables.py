"""Rows of tables: a claim about the row of A1 is held against the row of A1, cell by cell."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from aftercheck_schemas.evaluation import Evidence
from aftercheck_worker.stages.checks.alignment import Alignment, Subject
from aftercheck_worker.stages.checks.finding import Finding
from aftercheck_worker.text.normalise import flat
from aftercheck_worker.text.tokens import words

MAX_ROWS: Final = 2000
_RULE: Final = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*:?-*:?\s*\|?\s*$")
_ZERO: Final = re.compile(
    r"\b(?:out of (?:stock|order)|sold out|no stock|none|zero|empty|brak|немає|нема|нет|ausverkauft|keine?)\b",
    re.IGNORECASE,
)


class Row(msgspec.Struct, frozen=True):
    """A data row: its range in the passage and its cells, folded."""

    start: int
    end: int
    cells: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def rows(text: str) -> tuple[Row, ...]:
    """Return the data rows of the markdown tables in a text; empty when there is none."""
    out: list[Row] = []
    start, body = 0, False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if _RULE.match(bare):
            body = True
        elif bare.count("|") < 2:
            body = False
        elif body and len(out) < MAX_ROWS:
            cells = tuple(flat(cell).strip().lower() for cell in bare.strip("|").split("|"))
            out.append(Row(start, start + len(line.rstrip()), cells))
        start += len(line)
    return tuple(out)


def check(subject: Subject, alignment: Alignment) -> Iterator[Finding]:
    """Yield a finding when the claim names the key of a row."""
    low = f" {' '.join(word.low for word in words(flat(subject.text)))} "
    for source in alignment.sources:
        if "|" not in source.text:
            continue
        table = rows(source.text)
        keyed = [row for row in table if f" {row.cells[0]} " in low and row.cells[0]]
        if not keyed or len({row.cells[0] for row in keyed}) > 1:
            continue
        others = _values(table, keyed)
        spans = tuple(source.span(row.start, row.end, 1.0) for row in keyed[:3])
        yield _judge(low, subject.text, keyed, others, spans)
        return


def _values(table: Sequence[Row], keyed: Sequence[Row]) -> set[str]:
    own = {cell for row in keyed for cell in row.cells}
    return {cell for row in table for cell in row.cells[1:] if cell and cell not in own}


def _judge(low: str, text: str, keyed: Sequence[Row], others: set[str], spans: tuple[Evidence, ...]) -> Finding:
    if any(f" {value} " in low for value in others):
        return Finding(
            kind="table", effect="convict", status="not_found", reason="row_has_other_value", evidence=spans
        )
    held = [cell for row in keyed for cell in row.cells[1:] if cell and f" {cell} " in low]
    zero = _ZERO.search(text) and any(cell == "0" for row in keyed for cell in row.cells)
    if held or zero:
        return Finding(kind="table", effect="support", reason="row_matches", evidence=spans, strength=0.9)
    return Finding(kind="table", effect="escalate", reason="row_found", evidence=spans, strength=0.3)
