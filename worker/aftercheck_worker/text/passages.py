"""Evidence text cut into units (sentences, record lines) with offsets: the same cut as in training.

For English prose and JSON records the units equal those of `training/window.py`, word for word; a test holds them
together. Capitals of other alphabets end a sentence as well, which the training copy need not know.
"""

from __future__ import annotations

import ast
import functools
import json
import re
from collections.abc import Iterator
from typing import Final, cast

import msgspec

from aftercheck_worker.text.segments import clean
from aftercheck_worker.text.sentences import Span, trim

MAX_UNIT_WORDS: Final = 60
MAX_RECORD: Final = 200_000

_UPPER: Final = "A-Z0-9\u00c0-\u00d6\u00d8-\u00de\u0100-\u017f\u0400-\u042f\u0490"
_BREAK: Final = re.compile(rf"(?<=[.!?])[\"')\]”’]*\s+(?=[\"'(\[“‘]?[{_UPPER}])|\n+|(?<=[。！？])")
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|Inc|Ltd|Co|Corp|vs|No|Gen|Sen|Rep|Gov|Lt|Col|Sgt|"
    r"Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec|e\.g|i\.e|U\.S|a\.m|p\.m)|\b[A-Z])\.$"
)
_WORD: Final = re.compile(r"\S+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_HOURS: Final = re.compile(r"\d{1,2}:\d{1,2}\s?[-–]\s?\d{1,2}:\d{1,2}")
_CLOCK: Final = re.compile(r"\d:\d(?!\d)")


class Unit(msgspec.Struct, frozen=True):
    """A unit of a passage: `start`..`end` in the passage, and its text as the verifier reads it."""

    start: int
    end: int
    text: str


@functools.lru_cache(maxsize=2048)
def units(text: str) -> tuple[Unit, ...]:
    """Cut a passage into units, in order; records (JSON, Python literals) into one `key path: value` per leaf."""
    record = _record(text)
    if record is not None:
        return tuple(_record_units(text, record))
    return tuple(_prose(text, 0, len(text)))


def _prose(text: str, start: int, end: int) -> Iterator[Unit]:
    open_span: Span | None = None
    for piece in _pieces(text, start, end):
        if not clean(text[piece.start : piece.end]):
            continue
        if open_span is not None and _ABBREVIATION.search(clean(text[max(0, open_span.end - 40) : open_span.end])):
            open_span = Span(open_span.start, piece.end)
            continue
        if open_span is not None:
            yield from _cut(text, open_span)
        open_span = piece
    if open_span is not None:
        yield from _cut(text, open_span)


def _pieces(text: str, start: int, end: int) -> Iterator[Span]:
    position = start
    for found in _BREAK.finditer(text, start, end):
        yield trim(text, position, found.start())
        position = found.end()
    yield trim(text, position, end)


def _cut(text: str, span: Span) -> Iterator[Unit]:
    whole = clean(text[span.start : span.end])
    if len(whole.split()) <= MAX_UNIT_WORDS:
        yield Unit(span.start, span.end, whole)
        return
    found = list(_WORD.finditer(text, span.start, span.end))
    for index in range(0, len(found), MAX_UNIT_WORDS):
        part = found[index : index + MAX_UNIT_WORDS]
        start, end = part[0].start(), part[-1].end()
        if clean(text[start:end]):
            yield Unit(start, end, clean(text[start:end]))


def _record(text: str) -> object | None:
    body = text.strip()
    if not 2 <= len(body) <= MAX_RECORD or body[0] not in "{[" or body[-1] not in "}]":
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value: object = read(body)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, (dict, list)):
            return cast("object", value)
    return None


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str, tuple[str, ...]]]:
    """Yield (keys, value as words, ways in which the source may spell the value) of every leaf."""
    if isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(item, (*path, str(key)))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (dict, list)) for item in value):  # pyright: ignore[reportUnknownVariableType]
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _leaves(item, path)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, (list, tuple)):
        leaf = ", ".join(str(item) for item in value)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        yield path, leaf, (leaf, *_spellings(value))  # pyright: ignore[reportUnknownArgumentType]
    else:
        leaf = "null" if value is None else str(value)
        yield path, leaf, (leaf, *_spellings(value), str(value))


def _spellings(value: object) -> tuple[str, ...]:
    r"""A value as JSON writes it, without the quotes of a string: `true`, `[1,2]`, `two\nlines`."""
    try:
        return (
            json.dumps(value, ensure_ascii=False).strip('"'),
            json.dumps(value).strip('"'),
            json.dumps(value, separators=(",", ":")).strip('"'),
        )
    except (TypeError, ValueError):
        return ()


def _key_words(key: str) -> str:
    """`outdoor_seating` and `OutdoorSeating` as words, so that a claim in words can find them."""
    return _CAMEL.sub(" ", key.replace("_", " ")).strip()


def _spoken(leaf: str) -> str:
    """`9:0-17:30` as a reader would write it."""
    return _CLOCK.sub(r"\g<0>0", leaf) if _HOURS.fullmatch(leaf) else leaf


def _key_place(text: str, key: str, start: int) -> int:
    """Offset of the next such key, quoted before bare; -1 when there is none."""
    quoted = [at + 1 for mark in "\"'" if (at := text.find(f"{mark}{key}{mark}", start)) >= 0]
    return min(quoted, default=text.find(key, start))


def _leaf_span(text: str, start: int, spellings: tuple[str, ...]) -> Span | None:
    """Where the nearest spelling of a leaf stands behind its key."""
    found = [(at, len(way)) for way in dict.fromkeys(spellings) if way and (at := text.find(way, start)) >= 0]
    return Span(min(found)[0], sum(min(found))) if found else None


def _record_units(text: str, record: object) -> Iterator[Unit]:
    """Units of a record; the span is the value where it stands in the source, else its key, else the record."""
    position = 0
    whole = trim(text, 0, len(text))
    try:
        found = list(_leaves(record))
    except RecursionError:
        yield from _prose(text, 0, len(text))
        return
    for path, leaf, spellings in found:
        at = _key_place(text, path[-1], position) if path and path[-1] else position
        span = _leaf_span(text, max(at, position), spellings) or (
            Span(at, at + len(path[-1])) if path and at >= position else whole
        )
        position = span.end if span is not whole else position
        line = f"{' '.join(map(_key_words, path))}: {_spoken(leaf)}" if path else leaf
        for unit in _prose(line, 0, len(line)):
            yield Unit(span.start, span.end, unit.text)
