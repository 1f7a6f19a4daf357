"""The engine: a `Verifier` that puts the stages together around any `PairScorer`.

evidence -> retrieval -> one scorer call for all claims of the batch (and one more for the claims in the band) ->
checks -> consistency -> decision. Cost is linear in claims; every claim is read whole, the evidence is windowed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from aftercheck_schemas import CitationFinding, Claim, Evidence, Verdict
from aftercheck_schemas.vocabulary import ClaimType
from aftercheck_worker.models.base import Encoder, ModelInfo, Pair, PairScore, PairScorer
from aftercheck_worker.stages import checks, consistency, decision, evidence, retrieval
from aftercheck_worker.stages.checks import citations
from aftercheck_worker.stages.verification import Findings, Item
from aftercheck_worker.text.lexicon import digest
from aftercheck_worker.text.normalise import plain
from aftercheck_worker.text.restatement import restated
from aftercheck_worker.text.tokens import terms

logger = logging.getLogger(__name__)

SETTLED: Final = 0.6
"""Support from here needs no further window."""
FURTHER: Final = 2
"""Windows of a claim that the first one leaves unsettled, the first included."""
FURTHER_RELEVANCE: Final = 0.35
"""Relevance that a further window needs: below it, reading more of the pool only costs time."""
CITED_UNITS: Final = 3
Calibrate = Callable[[ClaimType, PairScore], tuple[float, float]]
"""(type, raw score) -> calibrated (support, contradiction), 0..1."""


def uncalibrated(_: ClaimType, score: PairScore) -> tuple[float, float]:
    """Return the raw probabilities."""
    return score.entailment, score.contradiction


class _Case(msgspec.Struct, frozen=True, kw_only=True):
    """One answer on its way."""

    item: Item
    claims: tuple[Claim, ...]
    pool: evidence.EvidencePool
    index: retrieval.Index
    alignment: checks.Alignment
    queries: tuple[retrieval.Query, ...]


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A pair and what it was asked for."""

    case: int
    claim: int
    window: retrieval.Window
    pair: Pair
    citation: int | None = None


class Engine:
    """Verifies claims by windows, a scorer and checks. Keeps no state between calls.

    Args:
        scorer: says how much a window supports or contradicts a claim.
        encoder: a second ranking for retrieval, optional.
        thresholds: cuts on calibrated probabilities.
        calibrate: from raw to calibrated probabilities.
        budget_words: words of one window, as the scorer was trained.
    """

    def __init__(
        self,
        scorer: PairScorer,
        *,
        encoder: Encoder | None = None,
        thresholds: decision.Thresholds | None = None,
        calibrate: Calibrate = uncalibrated,
        budget_words: int = retrieval.BUDGET_WORDS,
    ) -> None:
        self._scorer = scorer
        self._encoder = encoder
        self._thresholds = thresholds or decision.Thresholds()
        self._calibrate = calibrate
        self._budget = budget_words

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """The scorer's identity, and the encoder's."""
        return (self._scorer.info, *((self._encoder.info,) if self._encoder is not None else ()))

    @property
    def parameters(self) -> dict[str, object]:
        """Thresholds, window size, band and the digest of the lexicons."""
        thresholds: object = msgspec.to_builtins(self._thresholds)
        return {
            "thresholds": thresholds,
            "budget_words": self._budget,
            "further": [SETTLED, FURTHER, FURTHER_RELEVANCE],
            "lexicons": digest(),
        }

    def verify(self, items: Sequence[Item]) -> list[Findings]:
        """Return the findings of each item, in order. A scorer that raises gives `unclear`, never a score."""
        cases = [self._case(item) for item in items]
        first = [asked for number, case in enumerate(cases) for asked in self._first(number, case)]
        scored = self._score(first)
        second = self._second(cases, scored)
        scored = [*scored, *self._score(second)]
        failed = {one.case for one in (*first, *second)} - {one.case for one, _ in scored}
        return [self._findings(n, case, scored, failed=n in failed) for n, case in enumerate(cases)]

    def _case(self, item: Item) -> _Case:
        pool = evidence.pool(item.interaction)
        found = tuple(claim for claim in item.claims if claim.verifiable)
        dialogue = [source.text for source in pool.sources if source.kind == "user_input"]
        question = item.interaction.question
        return _Case(
            item=item,
            claims=found,
            pool=pool,
            index=retrieval.Index(pool.sources, self._encoder),
            alignment=checks.Alignment(pool.sources, question, dialogue),
            queries=tuple(retrieval.Query(claim=_readable(claim), question=question) for claim in found),
        )

    def _first(self, number: int, case: _Case) -> list[_Asked]:
        out: list[_Asked] = []
        for place, windows in enumerate(case.index.windows(case.queries, budget_words=self._budget)):
            out += [_ask(case, number, place, window) for window in windows]
            out += self._cited(number, case, place)
        return out

    def _cited(self, number: int, case: _Case, place: int) -> list[_Asked]:
        """Ask about the cited source alone: a citation is judged by what its own source says."""
        out: list[_Asked] = []
        for order, cited in enumerate(citations.resolve(case.claims[place], case.pool.sources)):
            if cited.source is None or len(case.pool.sources) == 1:
                continue
            alone = retrieval.Index([case.pool.sources[cited.source]]).windows(
                [case.queries[place]], budget_words=self._budget
            )[0]
            out += [_ask(case, number, place, window, order) for window in alone[:1]]
        return out

    def _second(self, cases: Sequence[_Case], scored: Sequence[tuple[_Asked, PairScore]]) -> list[_Asked]:
        """Ask about further windows of the claims that the first one neither supports nor contradicts."""
        out: list[_Asked] = []
        for asked, score in scored:
            case = cases[asked.case]
            if asked.citation is not None or sum(case.index.lengths) <= self._budget:
                continue
            if max(self._calibrate(case.claims[asked.claim].type, score)) < SETTLED:
                query = case.queries[asked.claim]
                windows = case.index.windows([query], budget_words=self._budget, count=FURTHER)[0][1:]
                out += [_ask(case, asked.case, asked.claim, w) for w in windows if w.relevance >= FURTHER_RELEVANCE]
        return out

    def _score(self, asked: Sequence[_Asked]) -> list[tuple[_Asked, PairScore]]:
        """Score all in one call; when that raises, answer by answer, so that one answer costs no other."""
        try:
            return list(zip(asked, self._scorer.score([one.pair for one in asked]), strict=True))
        except MemoryError:
            raise
        except Exception:
            answers = sorted({one.case for one in asked})
            if len(answers) > 1:
                return [pair for n in answers for pair in self._score([one for one in asked if one.case == n])]
            logger.exception(
                "The verifier failed; the claims of an answer stay unclear", extra={"action": "scorer_failed"}
            )
            return []

    def _findings(
        self, number: int, case: _Case, scored: Sequence[tuple[_Asked, PairScore]], *, failed: bool
    ) -> Findings:
        scores: dict[int, list[decision.Score]] = {}
        cited: dict[tuple[int, int], float] = {}
        for one, score in scored:
            if one.case != number:
                continue
            support, contradiction = self._calibrate(case.claims[one.claim].type, score)
            if one.citation is not None:
                cited[one.claim, one.citation] = support
                continue
            made = _scored(case, one, support, contradiction)
            scores.setdefault(one.claim, []).append(made)
        found = checks.run(case.claims, case.alignment, case.pool.failed)
        verdicts = [
            decision.decide(
                claim, None if failed else scores.get(place, []), found[place], case.pool, self._thresholds
            )
            for place, claim in enumerate(case.claims)
        ]
        conflicts = consistency.within(case.claims)
        history = consistency.against_history(case.claims, case.item.interaction.history)
        return Findings(
            verdicts=tuple(_consistent(verdicts, conflicts)),
            citations=_citations(case, cited),
            self_contradiction=bool(conflicts or history),
        )


def _readable(claim: Claim) -> str:
    """The claim as it can be read alone: its premise in front, markup gone."""
    text = plain(claim.text)
    if not claim.premise:
        return text
    return f"{plain(claim.premise)}({text})" if claim.type == "code" else f"{plain(claim.premise)} {text}"


def _ask(case: _Case, number: int, place: int, window: retrieval.Window, citation: int | None = None) -> _Asked:
    previous = _readable(case.claims[place - 1]) if place else ""
    query = case.queries[place]
    claim = restated(query.claim, window.text)
    pair = Pair(premise=window.text, claim=claim, question=query.question, previous=previous)
    return _Asked(case=number, claim=place, window=window, pair=pair, citation=citation)


def _scored(case: _Case, asked: _Asked, support: float, contradiction: float) -> decision.Score:
    sources = case.pool.sources
    # What the user stated is full evidence of what the user stated, however little the pool trusts users.
    trusts = (1.0 if sources[p].kind == "user_input" else sources[p].trust for p in asked.window.sources)
    trust = max(trusts, default=0.0)
    return decision.Score(
        support=support * trust,
        contradiction=contradiction * trust,
        relevance=asked.window.relevance,
        evidence=_spans(case, asked, max(support, contradiction)),
        elided=any(sources[place].elided for place in asked.window.sources),
    )


def _spans(case: _Case, asked: _Asked, score: float) -> tuple[Evidence, ...]:
    """Up to three units of the window that the claim ranks best and that share most with it, in document order."""
    pieces = asked.window.pieces
    wanted = frozenset(terms(asked.pair.claim))
    ranked = [pieces[place] for place in asked.window.best[:CITED_UNITS]] or list(pieces[:1])
    shared = [len(wanted.intersection(terms(piece.text))) for piece in ranked]
    chosen = [piece for piece, count in zip(ranked, shared, strict=True) if 2 * count > max(shared)] or ranked[:1]
    chosen.sort(key=lambda piece: (piece.source, piece.start))
    return tuple(case.pool.sources[piece.source].span(piece.start, piece.end, score) for piece in chosen)


def _consistent(verdicts: Sequence[Verdict], conflicts: Sequence[consistency.Conflict]) -> list[Verdict]:
    """The later of two conflicting claims is contradicted when the earlier one is supported and it is not."""
    known = {verdict.claim_id: verdict for verdict in verdicts}
    against = {conflict.later: conflict.earlier for conflict in conflicts}
    out: list[Verdict] = []
    for verdict in verdicts:
        earlier = known.get(against.get(verdict.claim_id, ""))
        changed = verdict
        if earlier is not None and earlier.status == "supported" and verdict.status in ("not_found", "unclear"):
            changed = msgspec.structs.replace(
                verdict,
                status="contradicted",
                confidence=0.75,
                reason="self_contradiction",
                evidence=earlier.evidence,
                decided_by="check",
            )
        out.append(changed)
    return out


def _citations(case: _Case, cited: dict[tuple[int, int], float]) -> tuple[CitationFinding, ...]:
    out: list[CitationFinding] = []
    for place, claim in enumerate(case.claims):
        if claim.citations:
            resolved = citations.resolve(claim, case.pool.sources)
            support = [cited.get((place, order)) for order in range(len(resolved))]
            out += citations.judge(case.alignment.subject(claim), case.alignment, resolved, support)
    return tuple(out)
