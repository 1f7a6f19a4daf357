"""What an operator makes of one supported claim, and the document context it may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Edit:
    """A negative and its twin.

    negative: unsupported text; spans: its unsupported character ranges.
    contradiction: 1 the evidence says otherwise, 0 it is silent, -1 unknown.
    positive: text with the same kind of change that the evidence still supports.
    """

    negative: str
    spans: list[tuple[int, int]]
    contradiction: int
    positive: str


@dataclass(frozen=True, slots=True)
class Context:
    """The evidence around a claim: its document's sentences, and phrases of other documents."""

    sentences: Sequence[str]
    foreign: Sequence[str]

    @property
    def text(self) -> str:
        """The whole document."""
        return " ".join(self.sentences)


Operator = Callable[[str, Context, Random], "Edit | None"]


def replace(text: str, start: int, end: int, new: str) -> tuple[str, tuple[int, int]]:
    """Put `new` at [start, end); the new text and the range of the inserted part."""
    return text[:start] + new + text[end:], (start, start + len(new))


def stem_point(text: str) -> str:
    """The text without its final full stop."""
    return text.rstrip().removesuffix(".").rstrip()


def decapitalise(text: str, keep: Callable[[str], bool]) -> str:
    """Lower the first letter unless the first word is to be kept (a name)."""
    first = text.split(" ", 1)[0]
    return text if keep(first) else text[:1].lower() + text[1:]


def words(text: str) -> list[str]:
    """The words of a hand-written list."""
    return text.split()
