"""Templates, and how model text is shown: escaped, isolated, its hidden characters made visible (trust.md S32)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

_SIGNS: Final = re.compile(
    r"<(?P<kind>[A-Z][A-Z_]{1,24})_[0-9a-f]{6}>|"
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Placeholders of redacted values (architecture.md, Redaction), and characters that nobody sees."""
MAX_CHARS: Final = 200_000
"""A longer text is cut until the reader asks for all of it."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch [start, end) of a text, in code points. `status` "" is plain text between the claims."""

    start: int
    end: int
    name: str = ""
    status: str = ""
    label: str = ""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a text with its mark."""

    text: str
    mark: Mark | None = None


def pieces(text: str, marks: Sequence[Mark]) -> list[Piece]:
    """Cut a text at its marks, in order; a mark that overlaps an earlier one or lies outside is left out."""
    found: list[Piece] = []
    at = 0
    for mark in sorted(marks, key=lambda m: (m.start, m.end)):
        if mark.start < at or mark.end > len(text) or mark.end <= mark.start:
            continue
        if mark.start > at:
            found.append(Piece(text=text[at : mark.start]))
        found.append(Piece(text=text[mark.start : mark.end], mark=mark))
        at = mark.end
    if at < len(text):
        found.append(Piece(text=text[at:]))
    return found


def shown(text: object) -> Markup:
    """Return model text as isolated markup: hidden characters are named, redacted values are marked."""
    parts, at, plain = [Markup("<bdi>")], 0, str(text)
    for sign in _SIGNS.finditer(plain):
        parts += [escape(plain[at : sign.start()]), _sign(sign)]
        at = sign.end()
    return Markup("").join([*parts, escape(plain[at:]), Markup("</bdi>")])


def redactions(texts: Iterable[str]) -> dict[str, int]:
    """Count redacted values by kind, lower case, such as `email`."""
    kinds = (sign["kind"] for text in texts for sign in _SIGNS.finditer(text) if sign["kind"])
    return dict(Counter(kind.lower().replace("_", " ") for kind in kinds))


def _sign(sign: re.Match[str]) -> Markup:
    if sign["kind"]:
        title = f"{sign['kind'].lower()}: replaced before it was stored"
        return Markup('<span class="redacted" title="{}">{}</span>').format(title, sign[0])
    return Markup('<span class="hidden" title="hidden character">{}</span>').format(f"U+{ord(sign[0]):04X}")


def fit(word: str) -> str:
    """Return a word of a link as Postgres can compare it: without NUL and lone surrogates."""
    return word.replace("\x00", "").encode("utf-8", "replace").decode()


def number(value: object) -> str:
    """Two digits, or a dash for what was not measured."""
    return f"{value:.2f}" if isinstance(value, int | float) else "–"


def percent(value: object) -> str:
    """A ratio as per cent, or a dash."""
    return f"{100 * value:.1f} %" if isinstance(value, int | float) else "–"


def points(value: object) -> str:
    """A difference of two ratios in percentage points, signed, or a dash."""
    return f"{100 * value:+.1f}" if isinstance(value, int | float) else "–"


def moment(value: object) -> str:
    """UTC, to the second."""
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else "–"


ICONS: Final = {"supported": "✓", "contradicted": "✗", "not_found": "?", "unclear": "~", "skipped": "·"}
WORDS: Final = {
    "contradicted": "contradicted",
    "not_found": "not found",
    "unclear": "unclear",
    "supported": "supported",
}

_environment: Final = Environment(
    loader=PackageLoader("aftercheck_worker.api.ui"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)
_environment.filters.update(shown=shown, number=number, percent=percent, points=points, moment=moment)


def page(template: str, *, status: int = 200, **values: object) -> HTMLResponse:
    """Render a page."""
    html = _environment.get_template(template).render(ICONS=ICONS, WORDS=WORDS, **values)
    return HTMLResponse(html.encode("utf-8", "replace"), status)
