"""Windows of training rows: the product's own cut over the gold passage and distractors."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from .window import select_window, terms

BUDGETS = (60, 80, 100, 130, 170, 170)


def covers(window: str, claim: str, passage: str) -> bool:
    """Every content term that the claim shares with its passage stands in the window."""
    return set(terms(claim)) & set(terms(passage)) <= set(terms(window))


def cut(
    claim: str, question: str, passage: str, distractors: Sequence[str], random: Random, budget: int, gold: bool
) -> str | None:
    """The window of a row; where it must hold the gold evidence and does not, fewer distractors, then None."""
    for kept in (list(distractors), []):
        passages = [passage, *kept]
        random.shuffle(passages)
        window = select_window(claim, question, passages, budget)
        if not gold or covers(window, claim, passage):
            return window
    return None
