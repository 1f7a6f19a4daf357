"""Pure text handling below the stages: normalisation, sentences, tokens, numerals, lexicons."""

from __future__ import annotations
