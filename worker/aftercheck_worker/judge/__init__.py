"""The LLM judge: asks a generator about claims and relevance, inside deadlines and budgets."""

from __future__ import annotations

from aftercheck_worker.judge.engine import Judge, JudgePlan

__all__ = ["Judge", "JudgePlan"]
