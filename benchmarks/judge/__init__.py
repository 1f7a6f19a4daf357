"""Our judge's parse and score beside Ragas, DeepEval and TruLens: the same replies to each (issue of false zeros)."""

from __future__ import annotations

KEYS = ("judge.replies_",)
