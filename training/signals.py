"""Lexical and deterministic signals of the stacker. Pure python; none of them names the format of the evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .operators.edit import words
from .operators.entity import names
from .window import terms

FEATURES = ("support", "contradiction", "token_peak", "containment", "novel_number", "novel_name", "negation_differs")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORDS = {
    w: str(i) for i, w in enumerate(words("zero one two three four five six seven eight nine ten eleven twelve"))
}
_NEGATION = re.compile(r"\b(?:not|no|never|none|neither|nor|without|cannot)\b|n['’]t\b", re.IGNORECASE)
_PIECE = re.compile(r"(?<=[.!?])\s+|\[unused2\]")


def numbers(text: str) -> set[str]:
    """Digit strings without separators or leading zeros; small number words count as digits."""
    found = {n.replace(",", "").lstrip("0") or "0" for n in _NUMBER.findall(text)}
    return found | {_WORDS[w] for w in re.findall(r"[a-z]+", text.lower()) if w in _WORDS}


def containment(claim: str, window: str) -> float:
    """Share of the claim's content terms that the window holds; 1 for a claim without content."""
    wanted = set(terms(claim))
    return len(wanted & set(terms(window))) / len(wanted) if wanted else 1.0


def _nearest(claim: str, window: str) -> str:
    """The window's sentence that shares most content terms with the claim."""
    wanted = set(terms(claim))
    return max(_PIECE.split(window), key=lambda piece: len(wanted & set(terms(piece))))


def signals(claim: str, window: str) -> tuple[float, float, float, float]:
    """containment, novel_number, novel_name, negation_differs; the last three are 0 or 1."""
    lower = window.lower()
    number = bool(numbers(claim) - numbers(window))
    name = any(word.lower() not in lower for match in names(f"x {claim}") for word in match[0].split())
    negation = bool(_NEGATION.search(claim)) != bool(_NEGATION.search(_nearest(claim, window)))
    return containment(claim, window), float(number), float(name), float(negation)


def vector(logits: Sequence[float], claim: str, window: str) -> list[float]:
    """The feature vector in the order of FEATURES; logits are clipped to +-8."""
    return [max(-8.0, min(8.0, float(x))) for x in logits] + list(signals(claim, window))
