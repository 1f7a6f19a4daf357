"""Folding of typography and markup. `flat` keeps every offset; `fold` carries a map back to the source."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import msgspec

_SAME_LENGTH: Final = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ＇´", "'"),
        **dict.fromkeys("“”„‟″«»＂", '"'),
        **dict.fromkeys("‐‑‒–—―−﹘﹣－", "-"),
        **dict.fromkeys(
            "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "
        ),
        "％": "%",
    }
)
_INVISIBLE: Final = frozenset(
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff\ufe0e\ufe0f"
)
_MARKUP: Final = frozenset("*`")
_LINK: Final = re.compile(r"\[([^\]\n]{1,300})\]\((?:[^()\n]{0,600})\)")
_EMPHASIS: Final = re.compile(r"\*{1,3}|`{1,3}|~~|(?<![\w])_{1,2}(?=\w)|(?<=\w)_{1,2}(?![\w])")
_TAG: Final = re.compile(r"</?(?:b|i|em|strong|p|br|span|div|u|code|sup|sub|li|ul|ol)\b[^<>]{0,80}>", re.IGNORECASE)
_SPACE: Final = re.compile(r"\s+")


def flat(text: str) -> str:
    """Unify quotes, dashes and spaces, one character for one: offsets into the result are offsets into `text`."""
    return text.translate(_SAME_LENGTH)


def plain(text: str) -> str:
    """Return what a reader sees: markup, invisible characters and compatibility forms removed, spaces collapsed.

    This is the form in which a claim goes to a verifier. Offsets are not kept.
    """
    seen = _LINK.sub(r"\1", text)
    seen = _TAG.sub(" ", _EMPHASIS.sub("", seen))
    seen = unicodedata.normalize("NFKC", "".join(c for c in seen if c not in _INVISIBLE))
    return _SPACE.sub(" ", seen).strip()


class Folded(msgspec.Struct, frozen=True):
    """A folded text and, for each of its characters, the offset of its source character.

    Attributes:
        text: NFKC, case-folded, typography unified, markup and invisible characters dropped, spaces collapsed.
        offsets: `len(text) + 1` ascending offsets into the source; the last is the length of the source.
    """

    text: str
    offsets: tuple[int, ...]

    def source(self, start: int, end: int) -> tuple[int, int]:
        """Return the range of the source that a non-empty range of the folded text came from."""
        return self.offsets[start], self.offsets[end - 1] + 1


def fold(text: str) -> Folded:
    """Fold for matching: see `Folded`. Linear in the text."""
    out: list[str] = []
    offsets: list[int] = []
    for index, character in enumerate(flat(text)):
        if character in _INVISIBLE or character in _MARKUP:
            continue
        form = character.lower() if character.isascii() else _folded(character)
        if form.isspace():
            if not out or out[-1] == " ":
                continue
            form = " "
        out.extend(form)
        offsets.extend([index] * len(form))
    offsets.append(len(text))
    return Folded("".join(out), tuple(offsets))


def _folded(character: str) -> str:
    if character == "…":
        return "..."
    return unicodedata.normalize("NFKC", character).casefold()
