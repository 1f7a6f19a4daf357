"""Whether a document stands in a prompt: compared on normalised text, with JSON escapes undone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from aftercheck_schemas import Passage
from aftercheck_worker.stages.extraction.shape import normalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_worker.stages.extraction.documents import Document
    from aftercheck_worker.stages.extraction.prompt import Prompt

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_MIN_HEAD: Final = 80
_MIN_PIECE: Final = 40
_MAX_PIECES: Final = 400
_SENTENCE: Final = re.compile(r"(?<=[.!?。])\s+|\n+")
_LABEL_LINE: Final = re.compile(r"[\w .\-]{1,30}[:=]\s*\S{0,200}$")
_MIN_WORDS: Final = 3


def split(documents: Sequence[Document], prompt: Prompt) -> tuple[list[Passage], list[Passage]]:
    """Documents that are in the prompt, and documents that are not.

    An app may put in only the head of a long document: then the head is the passage, marked as elided.
    """
    visible: list[Passage] = []
    absent: list[Passage] = []
    for number, document in enumerate(documents, 1):
        text, whole = _visible(document.text, prompt) if prompt.turns else ("", False)
        target = visible if text else absent
        target.append(
            Passage(
                source_id=document.source_id or f"doc:{number}",
                text=text or document.text,
                name=document.name,
                elided=document.cut or (bool(text) and not whole),
                at=document.at,
            )
        )
    return visible, absent


def without(text: str, pieces: Sequence[str]) -> str:
    """`text` without the pieces and the lines that only label them (`source: doc2.md`); "" when little is left."""
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece.strip(), "\n")
    lines = [line.strip() for line in text.split("\n")]
    kept = [line for line in lines if len(line.split()) >= _MIN_WORDS and not _LABEL_LINE.match(line)]
    return "\n".join(kept)


def unescaped(text: str) -> str:
    """JSON string escapes undone, also in text that is not a whole JSON document."""
    return _ESCAPE.sub(_replacement, text) if "\\" in text else text


def _replacement(match: re.Match[str]) -> str:
    if match.group(1):
        code = int(match.group(1), 16)
        return "\ufffd" if 0xD800 <= code <= 0xDFFF else chr(code)
    return _ESCAPED.get(match.group(2), match.group(2))


def _visible(text: str, prompt: Prompt) -> tuple[str, bool]:
    key = normalised(text)
    if not key:
        return "", False
    for shown in prompt.shown:
        if key in shown:
            return text, True
    if len(key) <= _MIN_HEAD:
        return "", False
    for shown in prompt.shown:
        at = shown.find(key[:_MIN_HEAD])
        if at >= 0:
            return _common_head(key, shown[at : at + len(key)]), False
    return _pieces(text, prompt.shown), False


def _pieces(text: str, shown: Sequence[str]) -> str:
    """Sentences of the document that stand in the prompt, for apps that cut a window out of it."""
    pieces = [piece for piece in _SENTENCE.split(text)[:_MAX_PIECES] if len(piece) >= _MIN_PIECE]
    return "\n".join(piece for piece in pieces if any(normalised(piece) in one for one in shown))


def _common_head(key: str, shown: str) -> str:
    low, high = _MIN_HEAD, min(len(key), len(shown))
    while low < high:
        middle = (low + high + 1) // 2
        if key[:middle] == shown[:middle]:
            low = middle
        else:
            high = middle - 1
    return key[:low].strip()
