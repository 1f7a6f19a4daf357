"""Claims inside code blocks: keyword arguments of calls, and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from aftercheck_worker.stages.claims.reader import Draft, Reader
from aftercheck_worker.text.sentences import Block, Span, trim

_CALL: Final = re.compile(r"([A-Za-z_][\w.]*)\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)")
_KEYWORD: Final = re.compile(r"\b([A-Za-z_]\w*)\s*=\s*(?!=)(\"[^\"\n]*\"|'[^'\n]*'|[^,()\n]+)")
_CHECKABLE_CODE: Final = re.compile(
    r"\w\(|^\s*(?:import|from|\$|pip|npm|curl|docker|kubectl|git)\b|https?://|--\w|=", re.MULTILINE
)


def of_code(block: Block, reader: Reader) -> Iterator[Draft]:
    """Keyword arguments of calls are claims of their own: an invented one is the usual error."""
    text = reader.answer[block.start : block.end]
    found = False
    for call in _CALL.finditer(text):
        for argument in _KEYWORD.finditer(call.group(2)):
            found = True
            start = block.start + call.start(2) + argument.start()
            span = trim(reader.answer, start, start + argument.end() - argument.start())
            yield Draft(span.start, span.end, premise=call.group(1), type="code")
    if not found:
        reason = None if _CHECKABLE_CODE.search(text) else "code"
        for span in _code_pieces(reader.answer, block):
            yield Draft(span.start, span.end, reason=reason, type="code")


def _code_pieces(text: str, block: Block) -> Iterator[Span]:
    start = block.start
    while start < block.end:
        stop = block.end if block.end - start <= 700 else text.rfind("\n", start + 1, start + 700)
        stop = stop if stop > start else min(start + 700, block.end)
        span = trim(text, start, stop)
        if span.end > span.start:
            yield span
        start = stop
