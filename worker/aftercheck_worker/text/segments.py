"""The verifier's input text; equal to what the weights were trained on (`training/format.py`, held equal by a test).

Segment A is the evidence window: title first, sentences in document order, GAP at each jump.
Segment B is `QUESTION question PREVIOUS previous CLAIM claim`; absent parts go with their marker.
The markers are single ids of the BERT vocabulary that pre-training never used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

GAP: Final = "[unused2]"
QUESTION: Final = "[unused3]"
PREVIOUS: Final = "[unused4]"
CLAIM: Final = "[unused5]"

MAX_QUESTION_WORDS: Final = 40
MAX_PREVIOUS_WORDS: Final = 40
MAX_CLAIM_WORDS: Final = 110

_MARKER = re.compile(r"\[\s*(?:unused\d+|CLS|SEP|PAD|UNK|MASK)\s*\]", re.IGNORECASE)
_SPACE = re.compile(r"\s+")


def clean(text: str) -> str:
    """Collapse white space and drop marker look-alikes, so that no source text can forge a segment."""
    return _SPACE.sub(" ", _MARKER.sub(" ", text)).strip()


def segment_a(runs: Sequence[Sequence[str]], title: str = "") -> str:
    """Join runs of adjacent sentences: spaces inside a run, GAP between runs, the title in front."""
    parts = [" ".join(clean(sentence) for sentence in run) for run in runs]
    if title.strip():
        parts.insert(0, clean(title))
    return f" {GAP} ".join(part for part in parts if part)


def segment_b(claim: str, question: str = "", previous: str = "") -> str:
    """Build segment B; the end of a long previous sentence and the head of the others are kept.

    A claim above MAX_CLAIM_WORDS must be split by the caller: a cut claim would be judged by its head alone.
    """
    parts: list[str] = []
    if question.strip():
        parts += [QUESTION, " ".join(clean(question).split()[:MAX_QUESTION_WORDS])]
    if previous.strip():
        parts += [PREVIOUS, " ".join(clean(previous).split()[-MAX_PREVIOUS_WORDS:])]
    parts += [CLAIM, " ".join(clean(claim).split()[:MAX_CLAIM_WORDS])]
    return " ".join(parts)
