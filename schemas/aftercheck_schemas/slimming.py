"""Make one attribute value small, valid and free of personal data: decode, summarise, redact, then cut.

Order matters. JSON strings are decoded first, because instrumentations escape non-ASCII text (openllmetry#4426);
vectors and blobs become summaries; text is redacted and only then cut, because a cut may halve a phone number.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import re
import struct
from typing import TYPE_CHECKING, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aftercheck_schemas.redaction import Redactor
    from aftercheck_schemas.trace import Json

MAX_DEPTH = 48
MAX_NESTED_JSON = 4
MAX_NODES = 200_000
VECTOR_MIN = 16
BLOB_MIN = 512
CUT_MARGIN = 1_024
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-]{512}")
_DATA_URL = re.compile(r"data:[\w.+\-]{1,60}/[\w.+\-]{1,80};base64,")
_CUT_JSON = re.compile(r'\s*(?:\{\s*"|\[\s*["\[{])')
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_MAX_INT = 2**63


class Slimmer:
    """Cleans the values of one trace; remembers whether the value in hand was cut.

    Args:
        redactor: replaces personal data.
        scope: the trace id, scope of the placeholders.
        max_chars: a longer text is cut, after redaction.
    """

    def __init__(self, redactor: Redactor, scope: str, max_chars: int) -> None:
        self._redactor = redactor
        self._scope = scope
        self._max_chars = max_chars
        self._nodes = 0
        self.cut = False

    def attribute(self, value: object, name: str = "") -> tuple[Json, bool]:
        """Return the clean value and whether it was cut. JSON strings stay JSON strings."""
        self._nodes = 0
        self.cut = False
        hidden = self._hidden(name, value) if name else None
        return (self._value(value, 0, 0) if hidden is None else hidden), self.cut

    def _hidden(self, name: str, value: object) -> str | None:
        if type(value) is int and 0 < value < 10**16:
            value = str(value)
        return self._redactor.redact_named(name, value, self._scope) if isinstance(value, str) else None

    def text(self, text: str, scope: str | None = None) -> str:
        """Clean a plain text; `scope` replaces the trace id, for values that must be equal across traces."""
        text = well_formed(text)
        if len(text) > self._max_chars + CUT_MARGIN:
            text = text[: self._max_chars + CUT_MARGIN]
        text = self._redactor.redact(text, self._scope if scope is None else scope)
        if len(text) > self._max_chars:
            self.cut = True
            text = text[: self._max_chars]
        return text

    def _value(self, value: object, depth: int, nested: int) -> Json:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            self.cut = True
            return None
        if isinstance(value, str):
            return self._string(value, depth, nested)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, (bytes, bytearray)):
            return digest_of(bytes(value))
        if isinstance(value, (list, tuple)):
            return self._sequence(cast("Sequence[object]", value), depth, nested)
        if hasattr(value, "items"):
            return self._mapping(cast("Mapping[object, object]", value), depth, nested)
        return self.text(str(value))

    def _integer(self, value: int) -> Json:
        if -10_000_000 < value < 10_000_000:
            return value
        text = str(value) if abs(value) < 10**40 else "number too large"
        clean = self._redactor.redact(text, self._scope)
        return value if clean == text and -_MAX_INT <= value < _MAX_INT else clean

    def _sequence(self, values: Sequence[object], depth: int, nested: int) -> Json:
        if is_vector(values):
            return vector_summary(cast("Sequence[float]", values))
        return [self._value(item, depth + 1, nested) for item in values]

    def _mapping(self, values: Mapping[object, object], depth: int, nested: int) -> Json:
        blob = _text_blob(values)
        result: dict[str, Json] = {}
        for name, value in values.items():
            key = str(name)
            if not key.isascii() or len(key) > 40 or "@" in key or any(char.isdigit() for char in key):
                key = self.text(key)
            if blob is not None and name == blob[0]:
                clean = self.text(blob[1])
                result[key] = base64.b64encode(clean.encode()).decode()
                continue
            hidden = self._hidden(key, value)
            result[key] = self._value(value, depth + 1, nested) if hidden is None else hidden
        return result

    def _string(self, text: str, depth: int, nested: int) -> Json:
        head = text[:64].lstrip()[:1]
        if head in ("{", "[") and nested < MAX_NESTED_JSON and len(text) > 1:
            decoded = decode_json(text)
            if decoded is not None:
                return self._json(text, decoded, depth, nested)
            if _CUT_JSON.match(text):
                text = _ESCAPE.sub(_unescape, text)
        if len(text) >= BLOB_MIN:
            blob = blob_of(text)
            if blob is not None:
                return blob
        return self.text(text)

    def _json(self, text: str, decoded: Json, depth: int, nested: int) -> str:
        clean = self._value(decoded, depth + 1, nested + 1)
        encoded = encode_json(clean)
        if nested and clean == decoded:
            return text  # a text inside a message: leave its very characters, evidence is quoted from it
        return encoded


def decode_json(text: str) -> Json:
    """Decode a JSON array or object; None when it is not valid (cut, too deep, plain text)."""
    try:
        return cast("Json", msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        pass
    try:
        return cast("Json", json.loads(text))  # accepts lone surrogates and NaN, which are cleaned later
    except (ValueError, RecursionError):
        return None


def encode_json(value: Json) -> str:
    """Encode without escapes of non-ASCII text."""
    return msgspec.json.encode(value).decode()


def well_formed(text: str) -> str:
    """Replace lone surrogates and NUL by U+FFFD: UTF-8 and Postgres take neither."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_vector(values: Sequence[object]) -> bool:
    """A long sequence of numbers with at least one float."""
    if len(values) < VECTOR_MIN or not isinstance(values[0], (int, float)):
        return False
    return all(type(v) in (float, int) for v in values) and any(type(v) is float for v in values)


def vector_summary(values: Sequence[float]) -> dict[str, Json]:
    """What is kept of an embedding: enough to see a broken index or zero vectors (R28)."""
    floats = [float(value) for value in values]
    norm = math.sqrt(math.fsum(value * value for value in floats)) if all(map(math.isfinite, floats)) else None
    packed = struct.pack(f"<{len(floats)}d", *floats)
    return {
        "dim": len(floats),
        "l2": None if norm is None or not math.isfinite(norm) else round(norm, 6),
        "is_zero": not any(floats),
        "sha256": hashlib.sha256(packed).hexdigest(),
    }


def digest_of(data: bytes) -> dict[str, Json]:
    """What is kept of an image or another blob."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "len": len(data)}


def blob_of(text: str) -> dict[str, Json] | None:
    """Summary of a base64 text or data URL of 512 characters or more; None for other text."""
    if _DATA_URL.match(text) or (_BASE64.match(text) and _looks_encoded(text)):
        return digest_of(text.encode("utf-8", "replace"))
    return None


def _looks_encoded(text: str) -> bool:
    """One unbroken run of base64 characters with a mix of cases and digits; a long word has none."""
    sample = text[:BLOB_MIN]
    mixed = any(c.isdigit() for c in sample) and any(c.isupper() for c in sample) and any(c.islower() for c in sample)
    return mixed and not re.search(r"[^A-Za-z0-9+/_\-=\s]", text[: BLOB_MIN * 8])


def _text_blob(values: Mapping[object, object]) -> tuple[object, str] | None:
    """Key and decoded text of a base64 part that is a document, not an image (OTel GenAI `blob` parts)."""
    mime = values.get("mime_type") or values.get("mimeType")
    if not isinstance(mime, str) or not mime.startswith(("text/", "application/json", "application/xml")):
        return None
    for name in ("content", "data"):
        value = values.get(name)
        if isinstance(value, str):
            try:
                return name, base64.b64decode(value, validate=True).decode()
            except (binascii.Error, ValueError):
                return None
    return None


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match.group(1), 16))
