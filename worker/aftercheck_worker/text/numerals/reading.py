"""Everything numeric in a text, in order."""

from __future__ import annotations

import re
from typing import Final

from aftercheck_worker.text.lexicon import Language
from aftercheck_worker.text.normalise import flat
from aftercheck_worker.text.numerals.figure import LETTERS, figures, ranged
from aftercheck_worker.text.numerals.moment import moments_in
from aftercheck_worker.text.numerals.quantity import Numerals
from aftercheck_worker.text.numerals.spelled import spelled
from aftercheck_worker.text.numerals.unit import blank

_IDENTIFIER: Final = re.compile(
    r"https?://\S+|\b[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}|(?<![\d.])\d+(?:\.\d+){3,}|\bv\d+(?:\.\d+)+"
    rf"|(?<![{LETTERS}])[{LETTERS}]+[-_]?\d[{LETTERS}\d_-]*"
    r"|\+\d[\d ()-]{7,30}\d|(?<!\w)/[\w./-]{2,}"
)
_SPLIT_GROUP: Final = re.compile(r"(?<=\d)(), (\d00)(?!\d)")
"""`30, 000`, as detokenised corpora write it."""


def read(text: str, language: Language = "other") -> Numerals:
    """Find quantities, dates and times of day. Identifiers (A1, v2.3.1, URLs, phone numbers) are left out.

    Args:
        text: any text; only its first 4,000 quantities are read.
        language: for spelled numbers; figures, units and months are read in all five languages.
    """
    plain = _SPLIT_GROUP.sub(r"\1,\2 ", flat(text))
    masked = blank(plain, [found.span() for found in _IDENTIFIER.finditer(plain) if not _is_unit_like(found.group())])
    moments = moments_in(masked)
    rest = blank(masked, [(m.start, m.end) for m in moments])
    quantities = ranged(rest, list(figures(rest, language)))
    taken = [(q.start, q.end) for q in quantities]
    quantities += spelled(blank(rest, taken), language)
    return Numerals(quantities=tuple(sorted(quantities, key=lambda q: q.start)), moments=tuple(moments))


def _is_unit_like(text: str) -> bool:
    return text.startswith("/") and text.count("/") == 1
