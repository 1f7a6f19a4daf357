"""Quantities and dates in text: values in every reading, unit, tolerance, offsets. Five languages, no library.

`1,250` is 1250 or 1.25 depending on the locale; both readings are kept, and two quantities agree when any pair of
readings does. A claim may round what the evidence says, never sharpen it.
"""

from __future__ import annotations

from aftercheck_worker.text.numerals.quantity import Agreement, Moment, Numerals, Quantity, agree, compare
from aftercheck_worker.text.numerals.reading import read

__all__ = ["Agreement", "Moment", "Numerals", "Quantity", "agree", "compare", "read"]
