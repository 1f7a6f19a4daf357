"""Replace personal data and secrets by placeholders, on decoded text, before anything leaves the process."""

from __future__ import annotations

import hashlib
import hmac

from aftercheck_schemas import pii

PIECE_CHARS = 8_192
"""One call into `re` holds the interpreter lock; pieces of this size keep that under a millisecond."""


def default_key(app: str) -> bytes:
    """Key of an app that sets no AFTERCHECK_REDACTION_KEY: the same in every process that knows the app's name."""
    return hashlib.sha256(f"aftercheck:{app}".encode("utf-8", "replace")).digest()


def user_hash(key: bytes, user: str) -> str:
    """Keyed hash of a user's name, 32 hex digits: all that a feedback says of who gave it."""
    return hmac.digest(key, f"user\0{user}".encode("utf-8", "replace"), hashlib.sha256).hex()[:32]


class Redactor:
    """Stateless redaction: equal values in one scope become equal placeholders, in every process with the key.

    A placeholder is `<KIND_` + the first 6 hex digits of HMAC-SHA256(key, scope, kind, normalised value) + `>`
    (architecture.md, Redaction). The scope is the trace id, so placeholders do not link traces.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def redact(self, text: str, scope: str) -> str:
        """Return the text with placeholders; the same object when there was nothing to replace.

        Takes about 0.1 ms per KB; linear in the length for any input.
        """
        if len(text) < 6:
            return text
        if len(text) <= PIECE_CHARS:
            return self._piece(text, scope)
        return "".join(self._piece(piece, scope) for piece in pieces(text))

    def mapped(self, text: str, scope: str) -> tuple[str, list[int] | None]:
        """Redact, and say where each character of the result comes from.

        Returns:
            The text with placeholders, and for each of its offsets the offset in `text` (one more than it has
            characters); None when nothing was replaced. All characters of a placeholder come from the value's start.
        """
        if self.redact(text, scope) is text:
            return text, None
        clean: list[str] = []
        origin: list[int] = []
        start = 0
        for piece in pieces(text) if len(text) > PIECE_CHARS else [text]:
            places = list(range(start, start + len(piece) + 1))
            clean.append(self._piece(piece, scope, places))
            origin += places[:-1]
            start += len(piece)
        return "".join(clean), [*origin, len(text)]

    def redact_named(self, name: str, value: str, scope: str) -> str | None:
        """Return a placeholder for a value whose key says what it is; None when the key says nothing."""
        kind = pii.kind_by_name(name[-80:], value)
        return None if kind is None else self._placeholder(kind, value, scope)

    def _placeholder(self, kind: str, value: str, scope: str) -> str:
        return f"<{kind}_{self.digest(_normalised(kind, value), scope, kind)}>"

    def digest(self, value: str, scope: str, kind: str) -> str:
        """The hex digits of a placeholder."""
        message = f"{scope}\0{kind}\0{value}".encode("utf-8", "replace")
        return hmac.digest(self._key, message, hashlib.sha256).hex()[:6]

    def _piece(self, text: str, scope: str, places: list[int] | None = None) -> str:
        numbers = pii.DIGIT_RUN.search(text) is not None
        for rule in pii.RULES:
            if rule.kind in pii.NUMBER_KINDS and not numbers:
                continue
            if rule.needs and not _holds(text, rule.needs):
                continue
            text = self._apply(rule, text, scope, places)
        return text

    def _apply(self, rule: pii.Rule, text: str, scope: str, places: list[int] | None) -> str:
        parts: list[str] = []
        moved: list[int] = []
        done = 0
        for match in rule.pattern.finditer(text):
            start, _ = pii.span_of(match)
            length = rule.accept(text, match)
            if length and start >= done:
                value = text[start : start + length]
                placeholder = self._placeholder(rule.kind, value, scope)
                parts += [text[done:start], placeholder]
                if places is not None:
                    moved += [*places[done:start], *[places[start]] * len(placeholder)]
                done = start + length
        if not parts:
            return text
        parts.append(text[done:])
        if places is not None:
            places[:] = [*moved, *places[done:]]
        return "".join(parts)


def _holds(text: str, words: tuple[str, ...]) -> bool:
    for word in words:  # noqa: SIM110 - any() over a generator costs three times as much, and this is the hot path
        if word in text:
            return True
    return False


def _normalised(kind: str, value: str) -> str:
    if kind == "PHONE":
        return pii.digits_of(value)[-9:]  # with and without country code
    if kind == "CARD":
        return pii.digits_of(value)
    if kind == "IBAN":
        return "".join(char for char in value if char.isalnum()).upper()
    return value.replace("%40", "@").lower() if kind == "EMAIL" else value


def pieces(text: str) -> list[str]:
    """Cut a long text between two words, where no pattern can lie across the cut.

    A piece ends at the last line break in its final quarter, else at a blank between two letters, else at any
    blank; text without blanks is cut hard, after twice the size.
    """
    found: list[str] = []
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = _cut(text, start + PIECE_CHARS * 3 // 4, start + PIECE_CHARS)
        found.append(text[start:end])
        start = end
    found.append(text[start:])
    return found


def _cut(text: str, low: int, high: int) -> int:
    line = text.rfind("\n", low, high)
    if line >= 0 and not _inside_key(text, line):
        return line + 1
    blank = text.rfind(" ", low, high)
    while blank > low:
        before, after = text[blank - 1], text[blank + 1 : blank + 2]
        if (before.isalpha() or before in ",;") and after.isalpha():
            return blank + 1
        blank = text.rfind(" ", low, blank)
    far = min(len(text), high + PIECE_CHARS)
    blank = text.find(" ", high, far)
    if blank >= 0:
        return blank + 1
    for at in range(far, far - 1_024, -1):  # text without blanks, e.g. Chinese or compact JSON
        if not text[at - 1].isascii() and not text[at : at + 1].isascii():
            return at
    return far


def _inside_key(text: str, at: int) -> bool:
    """A private key spans lines; it must not be cut in two."""
    begin = text.rfind("-----BEGIN", max(0, at - 8192), at)
    return begin >= 0 and text.find("-----END", begin, at) < 0
