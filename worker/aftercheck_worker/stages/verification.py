"""Verification: claims and passages in, one verdict per verifiable claim out.

Back ends stand behind `Verifier`; this file holds the exact lexical baseline of R13.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import msgspec

from aftercheck_schemas import CitationFinding, Claim, Evidence, Interaction, Passage, Verdict
from aftercheck_worker.models.base import ModelInfo, Pair, PairScorer

SUPPORTED_FROM: Final = 0.65
NOT_FOUND_TO: Final = 0.15
UNCLEAR_CONFIDENCE: Final = 0.5
NO_EVIDENCE_CONFIDENCE: Final = 0.8
TOP: Final = 3
EVIDENCE_CHARS: Final = 1_200
"""A longer passage is cited by the window that holds most of the claim's words."""

_WORD = re.compile(r"\S+")


class Item(msgspec.Struct, frozen=True):
    """One answer to verify: its interaction and the claims that were split from it."""

    interaction: Interaction
    claims: tuple[Claim, ...]


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier found about one answer.

    Attributes:
        verdicts: one per verifiable claim, in the order of the claims.
        citations: one per citation written in a claim.
        self_contradiction: the answer contradicts itself.
    """

    verdicts: tuple[Verdict, ...]
    citations: tuple[CitationFinding, ...] = ()
    self_contradiction: bool = False


class Verifier(Protocol):
    """Verifies a batch of answers. Implementations keep no state that changes a later verdict."""

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """Identities of the models inside, for `evaluator_version`."""
        ...

    @property
    def parameters(self) -> dict[str, object]:
        """Thresholds and everything else that can change a verdict, as JSON values."""
        ...

    def verify(self, items: Sequence[Item]) -> list[Findings]:
        """Return the findings of each item, in order."""
        ...


def usable(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """Return the passages that are evidence: not a failed tool, not blank, not the assistant's own earlier words."""
    return tuple(p for p in passages if p.ok and p.kind != "prior_assistant" and not p.text.isspace() and p.text)


class LexicalVerifier:
    """R13, exact: best = highest overlap x trust; >= 0.65 supported, <= 0.15 not_found, else unclear."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """The scorer's identity."""
        return (self._scorer.info,)

    @property
    def parameters(self) -> dict[str, object]:
        """R13's constants."""
        return {
            "supported_from": SUPPORTED_FROM,
            "not_found_to": NOT_FOUND_TO,
            "unclear_confidence": UNCLEAR_CONFIDENCE,
            "no_evidence_confidence": NO_EVIDENCE_CONFIDENCE,
            "top": TOP,
            "evidence_chars": EVIDENCE_CHARS,
        }

    def verify(self, items: Sequence[Item]) -> list[Findings]:
        """Return the findings of each item, in order, from one call of the scorer."""
        pools = [usable(item.interaction.passages) for item in items]
        pairs = [
            Pair(premise=passage.text, claim=claim.text)
            for item, pool in zip(items, pools, strict=True)
            for claim in item.claims
            if claim.verifiable
            for passage in pool
        ]
        scores = iter(self._scorer.score(pairs))
        found: list[Findings] = []
        for item, pool in zip(items, pools, strict=True):
            verdicts: list[Verdict] = []
            citations: list[CitationFinding] = []
            for claim in item.claims:
                supports = [next(scores).entailment * p.trust for p in pool] if claim.verifiable else []
                if claim.verifiable:
                    verdicts.append(_verdict(claim, pool, supports))
                if claim.citations:
                    citations += _citations(claim, pool, supports)
            found.append(Findings(verdicts=tuple(verdicts), citations=tuple(citations)))
        return found


def _verdict(claim: Claim, pool: tuple[Passage, ...], supports: list[float]) -> Verdict:
    if not pool:
        return Verdict(
            claim_id=claim.id,
            status="not_found",
            confidence=NO_EVIDENCE_CONFIDENCE,
            supported_probability=1.0 - NO_EVIDENCE_CONFIDENCE,
            reason="no_evidence_pool",
        )
    ranked = sorted(range(len(pool)), key=lambda i: -supports[i])[:TOP]
    best = supports[ranked[0]]
    if best >= SUPPORTED_FROM:
        return Verdict(
            claim_id=claim.id,
            status="supported",
            confidence=best,
            supported_probability=best,
            reason="lexical_overlap",
            evidence=(_evidence(claim, pool[ranked[0]], best),),
        )
    missing = best <= NOT_FOUND_TO
    return Verdict(
        claim_id=claim.id,
        status="not_found" if missing else "unclear",
        confidence=1.0 - best if missing else UNCLEAR_CONFIDENCE,
        supported_probability=best,
        reason="lexical_no_overlap" if missing else "lexical_partial_overlap",
        evidence=tuple(_evidence(claim, pool[i], supports[i]) for i in ranked),
    )


def _evidence(claim: Claim, passage: Passage, support: float) -> Evidence:
    start, end = 0, len(passage.text)
    if end > EVIDENCE_CHARS:
        start, end = _window(passage.text, frozenset(claim.text.lower().split()))
    return Evidence(
        source_id=passage.source_id,
        start=start,
        end=end,
        text=passage.text[start:end],
        kind=passage.kind,
        trust=passage.trust,
        score=support,
    )


def _window(text: str, words: frozenset[str]) -> tuple[int, int]:
    """Return the span of at most EVIDENCE_CHARS that holds the most of `words`, from word to word."""
    hits = [m.span() for m in _WORD.finditer(text) if m.group().lower() in words]
    if not hits:
        return 0, EVIDENCE_CHARS
    best, first = (0, 0), 0
    for last, (_, end) in enumerate(hits):
        while end - hits[first][0] > EVIDENCE_CHARS and first < last:
            first += 1
        best = max(best, (last - first + 1, -first))
    start = hits[-best[1]][0]
    return start, min(len(text), start + EVIDENCE_CHARS)


def _citations(claim: Claim, pool: tuple[Passage, ...], supports: list[float]) -> list[CitationFinding]:
    """Resolve each marker by source id, then by its 1-based position; entailment by R13's two thresholds."""
    places = {passage.source_id: place for place, passage in enumerate(pool)}
    found: list[CitationFinding] = []
    for label in claim.citations:
        place = places.get(label)
        if place is None and label.isascii() and label.isdigit() and 1 <= int(label[:6]) <= len(pool):
            place = int(label[:6]) - 1
        if place is None:
            found.append(CitationFinding(claim_id=claim.id, label=label))
            continue
        entails: bool | None = None
        if supports:
            entails = (
                True if supports[place] >= SUPPORTED_FROM else False if supports[place] <= NOT_FOUND_TO else None
            )
        found.append(
            CitationFinding(
                claim_id=claim.id, label=label, source_id=pool[place].source_id, exists=True, entails=entails
            )
        )
    return found
