"""The lexical baseline of R13: how many of a claim's words occur in a premise. A test oracle, never a verdict engine.

Measured on WiCE it answers `unclear` for 95 % of the claims (balanced accuracy 0.525) and it can never say
contradicted; whatever uses it is labelled `quality=smoke`.
"""

from __future__ import annotations

from collections.abc import Sequence

from aftercheck_worker.models.base import ModelInfo, Pair, PairScore


def tokens(text: str) -> frozenset[str]:
    """Return the set of lower-cased whitespace tokens of `text`, punctuation kept (R13)."""
    return frozenset(text.lower().split())


def overlap(claim: frozenset[str], premise: frozenset[str]) -> float:
    """Return the share of the claim's tokens that occur in the premise, 0..1; an empty claim has 0 (R13)."""
    return len(claim & premise) / len(claim) if claim else 0.0


class LexicalScorer:
    """`PairScorer` by token containment: entailment is the overlap, the rest is neutral, never contradiction."""

    info = ModelInfo(name="lexical-containment", revision="r13")

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        """Return one score per pair, in order. Linear in the characters of the distinct texts plus the pairs."""
        seen: dict[str, frozenset[str]] = {}
        found: list[PairScore] = []
        for pair in pairs:
            claim = seen.get(pair.claim)
            if claim is None:
                claim = seen[pair.claim] = tokens(pair.claim)
            premise = seen.get(pair.premise)
            if premise is None:
                premise = seen[pair.premise] = tokens(pair.premise)
            share = overlap(claim, premise)
            found.append(PairScore(entailment=share, neutral=1.0 - share, contradiction=0.0))
        return found
