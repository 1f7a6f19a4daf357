"""JSON inside attributes: decode once, repair the head of what a limit has cut (O-24, notes on capture 2.2)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from aftercheck_worker.stages.extraction.shape import is_dict, is_list

if TYPE_CHECKING:
    from aftercheck_schemas import Json

_decode = msgspec.json.Decoder().decode
_MAX_REPAIR = 4_000_000
_MAX_BACKTRACKS = 32
_MAX_DEPTH = 200
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},]|"', re.DOTALL)
_CUT_JSON = re.compile(r'\s*(?:\{\s*"|\[\s*[{\["])')
"""Text such as "[1] see page 4" starts like JSON and is none."""
_CLOSER = {"[": "]", "{": "}"}


class Decoded(NamedTuple):
    """A decoded attribute. `intact` is False when only the head could be read, or nothing at all."""

    value: Json
    intact: bool


def decode(value: Json) -> Decoded:
    """Decode a JSON string; any other value, or a string that is no JSON document, comes back as it is.

    Never raises. A document that ends too early is closed where it was cut, and `intact` is False.
    """
    if not isinstance(value, str) or not _looks_like_json(value):
        return Decoded(value, intact=True)
    try:
        return Decoded(_decode(value), intact=True)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    try:
        return Decoded(_clean(json.loads(value, strict=False)), intact=True)
    except (ValueError, RecursionError):
        return _repaired(value) if _CUT_JSON.match(value) else Decoded(value, intact=True)


def loads(value: Json) -> Json:
    """The decoded value of a whole document; a cut document stays the text that it is."""
    decoded = decode(value)
    return decoded.value if decoded.intact else value


def is_cut(value: Json) -> bool:
    """True for a JSON document that ends too early: a limit of OpenTelemetry cut the attribute and left no mark."""
    if not isinstance(value, str) or not _CUT_JSON.match(value) or value.rstrip().endswith(("]", "}")):
        return False
    return not decode(value).intact


def unquoted(value: Json) -> Json:
    """The text of a JSON string: decorators record a returned text as `"text"`. Anything else stays as it is."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        try:
            inner: Json = _decode(value)
        except (msgspec.DecodeError, UnicodeError):
            return value
        return inner
    return value


def is_document(value: Json) -> bool:
    """True for a string that starts like a JSON array or object."""
    return isinstance(value, str) and _looks_like_json(value)


def dumps(value: Json) -> str:
    """JSON text without ASCII escapes, "" for what cannot be encoded."""
    try:
        return msgspec.json.encode(value).decode("utf-8", "replace")
    except (TypeError, ValueError, OverflowError, RecursionError, UnicodeError):
        return ""


def _looks_like_json(text: str) -> bool:
    head = text[:64].lstrip()
    return head.startswith(("{", "["))


def _repaired(text: str) -> Decoded:
    if len(text) > _MAX_REPAIR:
        return Decoded(None, intact=False)
    for candidate in _candidates(text):
        try:
            return Decoded(_clean(json.loads(candidate, strict=False)), intact=False)
        except (ValueError, RecursionError):
            continue
    return Decoded(None, intact=False)


def _candidates(text: str) -> list[str]:
    """The text closed at its end, then closed at earlier and earlier commas and brackets."""
    stack: list[str] = []
    cuts: list[tuple[int, str]] = []
    open_string = -1
    for match in _TOKEN.finditer(text):
        mark = match.group()
        if mark in _CLOSER:
            stack.append(_CLOSER[mark])
            if len(stack) > _MAX_DEPTH:
                return []
            cuts.append((match.end(), "".join(reversed(stack))))
        elif mark == ",":
            cuts.append((match.start(), "".join(reversed(stack))))
        elif mark in ("]", "}"):
            if stack:
                stack.pop()
        elif mark == '"':
            open_string = match.start()
            break
        del cuts[:-_MAX_BACKTRACKS]
    closers = "".join(reversed(stack))
    head = [text.rstrip() + closers]
    if open_string >= 0:
        cut = re.sub(r"\\(?:u[0-9a-fA-F]{0,3})?$", "", text)
        cut = re.sub(r"\\u[dD][89abAB][0-9a-fA-F]{2}$", "", cut)
        head = [cut + '"' + closers]
    return head + [text[:end] + closing for end, closing in reversed(cuts)]


def _clean_text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _clean(value: Json, depth: int = 0) -> Json:
    """Without lone surrogates, which only the lenient parser lets through and Postgres refuses."""
    if isinstance(value, str):
        return _clean_text(value)
    if depth > _MAX_DEPTH:
        return None
    if is_list(value):
        return [_clean(item, depth + 1) for item in value]
    if is_dict(value):
        return {_clean_text(key): _clean(item, depth + 1) for key, item in value.items()}
    return value
