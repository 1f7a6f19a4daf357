"""The verifier's input text. Dependency-free, so that the product can hold an equal function.

Segment A is the evidence window: title first, sentences in document order, GAP at each jump.
Segment B is `QUESTION question PREVIOUS previous CLAIM claim`; absent parts go with their marker.
The markers are single ids of the BERT vocabulary that pre-training never used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

GAP = "[unused2]"
QUESTION = "[unused3]"
PREVIOUS = "[unused4]"
CLAIM = "[unused5]"
MARKERS = (GAP, QUESTION, PREVIOUS, CLAIM)

MAX_QUESTION_WORDS = 40
MAX_PREVIOUS_WORDS = 40
MAX_CLAIM_WORDS = 110
MAX_TOKENS = 320

_MARKER = re.compile(r"\[\s*(?:unused\d+|CLS|SEP|PAD|UNK|MASK)\s*\]", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """Collapse white space and drop marker look-alikes, so that no source text can forge a segment."""
    return _SPACE.sub(" ", _MARKER.sub(" ", text)).strip()


def _head(text: str, words: int) -> str:
    return " ".join(clean(text).split()[:words])


def _tail(text: str, words: int) -> str:
    return " ".join(clean(text).split()[-words:])


def segment_a(runs: Sequence[Sequence[str]], title: str = "") -> str:
    """Join runs of adjacent sentences: spaces inside a run, GAP between runs, the title in front."""
    parts = [" ".join(clean(sentence) for sentence in run) for run in runs]
    if title.strip():
        parts.insert(0, clean(title))
    return f" {GAP} ".join(part for part in parts if part)


def segment_b(claim: str, question: str = "", previous: str = "") -> str:
    """Build segment B; the end of a long previous sentence and the head of the others are kept."""
    parts: list[str] = []
    if question.strip():
        parts += [QUESTION, _head(question, MAX_QUESTION_WORDS)]
    if previous.strip():
        parts += [PREVIOUS, _tail(previous, MAX_PREVIOUS_WORDS)]
    parts += [CLAIM, _head(claim, MAX_CLAIM_WORDS)]
    return " ".join(parts)
