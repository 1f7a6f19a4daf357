"""JSON-like records as evidence: one `key path: value` line per leaf. Pure python."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

_MAX_CHARS = 200_000
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HOURS = re.compile(r"\d{1,2}:\d{1,2}\s?[-–]\s?\d{1,2}:\d{1,2}")
_CLOCK = re.compile(r"\d:\d(?!\d)")


def parse_record(text: str) -> dict[str, object] | list[object] | None:
    """Read a passage that is a JSON object or a Python literal; None when it is prose."""
    body = text.strip()
    if len(body) > _MAX_CHARS or len(body) < 2 or body[0] not in "{[" or body[-1] not in "}]":
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(body)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, (dict, list)):
            return value
    return None


def _words(key: object) -> str:
    return _CAMEL.sub(" ", str(key).replace("_", " ")).strip()


def _spoken(leaf: str) -> str:
    return _CLOCK.sub(r"\g<0>0", leaf) if _HOURS.fullmatch(leaf) else leaf


def leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Walk a record in order; yield (key path, value as text) for every leaf."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, _words(key)))
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (dict, list)) for item in value):
        for item in value:
            yield from leaves(item, path)
    elif isinstance(value, (list, tuple)):
        yield path, ", ".join(str(item) for item in value)
    else:
        yield path, "null" if value is None else str(value)


def record_lines(text: str) -> list[str] | None:
    """Lines such as `hours Monday: 8:0-17:0`; None when the text is no record."""
    value = parse_record(text)
    if value is None:
        return None
    return [f"{' '.join(path)}: {_spoken(leaf)}" if path else leaf for path, leaf in leaves(value)]
