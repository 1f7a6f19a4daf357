"""Containment: the share of a claim's content terms that stand in the premise. The floor and the fallback."""

from __future__ import annotations

from collections.abc import Sequence

from aftercheck_worker.models.base import ModelInfo, Pair, PairScore
from aftercheck_worker.text.content import content
from aftercheck_worker.text.language import detect
from aftercheck_worker.text.segments import clean


class ContainmentScorer:
    """A `PairScorer` without weights. It cannot see contradictions; checks do."""

    @property
    def info(self) -> ModelInfo:
        """Identity of the method."""
        return ModelInfo(name="containment", revision="1")

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        """Return one score per pair, in order; a claim without content terms scores one half."""
        return [_score(pair) for pair in pairs]


def _score(pair: Pair) -> PairScore:
    language = detect(f"{pair.claim}\n{pair.premise[:1000]}")
    wanted = content(clean(pair.claim), language)
    if not wanted:
        return PairScore(entailment=0.5, neutral=0.5, contradiction=0.0)
    held = len(wanted & content(clean(pair.premise), language)) / len(wanted)
    return PairScore(entailment=held, neutral=1.0 - held, contradiction=0.0)
