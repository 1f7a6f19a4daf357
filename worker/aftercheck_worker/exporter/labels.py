"""Label values: made harmless, and bounded in number (S31, operations.md 4).

A lone surrogate in one label breaks the whole scrape, and an app that writes a random value into `prompt_version`
would grow the series without end. Both are stopped here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

OTHER: Final = "other"
MAX_CHARACTERS: Final = 128
_BAD: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def scrub(value: str) -> str:
    """Return `value` without control, format and surrogate characters, at most 128 characters long."""
    if value.isascii() and value.isprintable():
        return value[:MAX_CHARACTERS]
    clean = (char if unicodedata.category(char) not in _BAD else "\N{REPLACEMENT CHARACTER}" for char in value)
    return "".join(clean)[:MAX_CHARACTERS]


class AllowList:
    """Values of one label that are exported by name; every other value becomes `other`.

    The list only grows, until it is full, so that a counter never changes its name between two scrapes. On the first
    call the values with the most weight are admitted first; ties go by name, so that replicas agree.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._admitted: set[str] = {""}

    def admit(self, weights: Mapping[str, float]) -> None:
        """Offer values with their weights."""
        room = self._limit - (len(self._admitted) - 1)
        fresh = (value for value in weights if value not in self._admitted)
        for value in sorted(fresh, key=lambda name: (-weights[name], name))[: max(0, room)]:
            self._admitted.add(value)

    def label(self, value: str) -> str:
        """Return the value, or `other`."""
        return value if value in self._admitted else OTHER


class LabelSets:
    """Bounds the number of label combinations: when there are too many, the widest label collapses to `other`.

    Args:
        values: most values of one label.
        sets: most combinations of all labels.
        names: labels in the order in which they appear in the tuples.
        collapse: labels to collapse, first one first. A collapsed label stays collapsed.
    """

    def __init__(self, values: int, sets: int, names: tuple[str, ...], collapse: tuple[str, ...]) -> None:
        self._lists = {name: AllowList(values) for name in names}
        self._names, self._sets = names, sets
        self._collapse = list(collapse)
        self._collapsed: set[str] = set()

    def admit(self, tuples: Iterable[tuple[tuple[str, ...], float]]) -> None:
        """Offer label tuples (already scrubbed) with their weights."""
        offered = list(tuples)
        for position, name in enumerate(self._names):
            weights: dict[str, float] = {}
            for values, weight in offered:
                weights[values[position]] = weights.get(values[position], 0.0) + weight
            self._lists[name].admit(weights)
        while self._collapse and len({self.labels(values) for values, _ in offered}) > self._sets:
            self._collapsed.add(self._collapse.pop(0))

    def labels(self, values: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tuple as it is exported."""
        return tuple(
            (OTHER if value else "") if name in self._collapsed else self._lists[name].label(value)
            for name, value in zip(self._names, values, strict=True)
        )
