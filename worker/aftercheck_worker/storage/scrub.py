"""The one place where text is made fit for Postgres: no NUL, no lone surrogates (trust.md S21)."""

from __future__ import annotations

import re
from typing import cast

import msgspec

REPLACEMENT = "\ufffd"
_UNFIT = re.compile("[\x00\ud800-\udfff]")
_NUL_ESCAPE = b"\\u0000"


def text(value: str) -> str:
    """Replace every NUL and lone surrogate by U+FFFD; the length in code points stays, so offsets stay true."""
    # isascii is a flag of the object: most text costs one search for NUL.
    if value.isascii():
        return value if "\0" not in value else value.replace("\0", REPLACEMENT)
    return _UNFIT.sub(REPLACEMENT, value)


def json(body: bytes) -> bytes:
    """Do the same inside a JSON document, keys included.

    Raises:
        msgspec.DecodeError: not JSON.
    """
    if _NUL_ESCAPE not in body:
        return body
    return msgspec.json.encode(_clean(msgspec.json.decode(body)))


def encode(value: object) -> bytes:
    """Encode a value as JSON that Postgres takes.

    Raises:
        TypeError: the value holds something that has no JSON form.
    """
    try:
        return json(msgspec.json.encode(value))
    except UnicodeEncodeError:
        return msgspec.json.encode(_clean(msgspec.to_builtins(value)))


def _clean(value: object) -> object:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list | tuple):
        return [_clean(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {text(str(key)): _clean(item) for key, item in cast("dict[object, object]", value).items()}
    return value
