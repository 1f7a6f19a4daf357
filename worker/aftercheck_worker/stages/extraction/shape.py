"""Narrowing of JSON values. Attributes hold anything, so every reader asks first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aftercheck_schemas import Json


def is_dict(value: Json) -> TypeGuard[dict[str, Json]]:
    """True for a JSON object."""
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    """True for a JSON array."""
    return isinstance(value, list)


def as_text(value: Json) -> str:
    """A string as it is, a number as text, anything else ""."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return ""


def as_count(value: Json) -> int:
    """A non-negative whole number, 0 for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(value) if 0 <= value < 1e12 else 0


def first_text(source: dict[str, Json], keys: Iterable[str]) -> str:
    """The first non-empty text among `keys`."""
    for key in keys:
        value = source.get(key)
        if value is not None and (text := value if isinstance(value, str) else as_text(value)):
            return text
    return ""


def normalised(text: str) -> str:
    """With single spaces, for comparing texts that differ in layout only."""
    return " ".join(text.split())
