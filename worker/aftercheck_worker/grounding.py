"""The trained verifier as a `Verifier`: evidence pool -> windows -> pair scores -> checks -> decisions.

The whole batch goes through the scorer in one call. A claim whose first window leaves it unsupported and that has
more relevant text than one window holds gets further windows in a second call; every window may support it (min over
groups), none of them can take support away except by a contradiction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from aftercheck_schemas import CitationFinding, Claim, Evidence, Interaction, Verdict
from aftercheck_worker.models.base import ModelInfo, Pair, PairScore, PairScorer
from aftercheck_worker.stages import checks, consistency, decision, evidence, retrieval
from aftercheck_worker.stages.verification import Findings, Item
from aftercheck_worker.text.tokens import terms

logger = logging.getLogger(__name__)

MAX_WINDOWS: Final = 4
EXTRA_FROM: Final = 0.35
"""Relevance that a further window needs: below it, reading more of the pool only costs time."""


class _Question(msgspec.Struct, frozen=True):
    """One claim with its window, ready to be scored."""

    claim: Claim
    pair: Pair
    window: retrieval.Window


class _Plan:
    """One answer on its way through the batch."""

    def __init__(self, item: Item) -> None:
        self.interaction: Interaction = item.interaction
        self.claims = [claim for claim in item.claims if claim.verifiable]
        self.pool = evidence.pool(item.interaction)
        self.index = retrieval.Index(self.pool.sources)
        self.previous = _previous(item.interaction.answer, item.claims)
        self.scores: dict[str, list[decision.Score]] = {claim.id: [] for claim in self.claims}
        self.failed = False

    def questions(self, claims: Sequence[Claim], *, count: int = 1, skip: int = 0) -> list[_Question]:
        """Windows `skip`..`count` of each claim, as pairs."""
        if not self.pool.sources:
            return []
        queries = [retrieval.Query(claim=_readable(c), question=self.interaction.question) for c in claims]
        found = self.index.windows(queries, count=count)
        return [
            _Question(claim, self._pair(claim, window), window)
            for claim, windows in zip(claims, found, strict=True)
            for window in windows[skip:]
            if not skip or window.relevance >= EXTRA_FROM
        ]

    def _pair(self, claim: Claim, window: retrieval.Window) -> Pair:
        return Pair(
            premise=window.text,
            claim=_readable(claim),
            question="" if claim.premise else self.interaction.question,
            previous=self.previous.get(claim.id, ""),
        )

    def unsettled(self, cut: float) -> list[Claim]:
        """Claims that no window supports or contradicts yet although the pool is larger than a window."""
        if sum(self.index.lengths) <= retrieval.BUDGET_WORDS:
            return []
        return [
            claim
            for claim in self.claims
            if all(score.support < cut and score.contradiction < cut for score in self.scores[claim.id])
        ]


class GroundingVerifier:
    """Verifies claims with a pair scorer, deterministic checks and calibrated cuts.

    Args:
        scorer: probabilities that a premise supports or contradicts a claim, calibrated to equal priors.
        thresholds: cuts on those probabilities.
    """

    def __init__(self, scorer: PairScorer, thresholds: decision.Thresholds) -> None:
        self._scorer = scorer
        self._thresholds = thresholds

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """The scorer's identity."""
        return (self._scorer.info,)

    @property
    def parameters(self) -> dict[str, object]:
        """Thresholds and window sizes."""
        return {
            "thresholds": msgspec.structs.asdict(self._thresholds),
            "budget_words": retrieval.BUDGET_WORDS,
            "max_windows": MAX_WINDOWS,
            "extra_from": EXTRA_FROM,
        }

    def verify(self, items: Sequence[Item]) -> list[Findings]:
        """Return the findings of each item, in order."""
        plans = [_Plan(item) for item in items]
        self._score(plans, [plan.questions(plan.claims) for plan in plans])
        cut = self._thresholds.support
        self._score(plans, [plan.questions(plan.unsettled(cut), count=MAX_WINDOWS, skip=1) for plan in plans])
        return [self._findings(plan) for plan in plans]

    def _score(self, plans: Sequence[_Plan], asked: Sequence[Sequence[_Question]]) -> None:
        """Score all pairs in one call; when that fails, answer by answer, so that one answer costs no other."""
        try:
            found = self._scorer.score([question.pair for questions in asked for question in questions])
        except MemoryError:
            raise
        except Exception:  # a back end may raise anything; it must not cost the batch
            logger.exception("The scorer failed on a batch", extra={"action": "scorer_failed"})
            if len(plans) > 1:
                for plan, questions in zip(plans, asked, strict=True):
                    self._score([plan], [questions])
            else:
                plans[0].failed = True
            return
        scores = iter(found)
        for plan, questions in zip(plans, asked, strict=True):
            for question in questions:
                plan.scores[question.claim.id].append(_window_score(question, next(scores), plan))

    def _findings(self, plan: _Plan) -> Findings:
        alignment = checks.Alignment(
            plan.pool.sources, plan.interaction.question, [message.text for message in plan.interaction.history]
        )
        found = checks.run(plan.claims, alignment, plan.pool.failed)
        verdicts = [
            decision.decide(
                claim, None if plan.failed else plan.scores[claim.id], findings, plan.pool, self._thresholds
            )
            for claim, findings in zip(plan.claims, found, strict=True)
        ]
        conflicts = consistency.within(plan.claims)
        history = consistency.against_history(plan.claims, plan.interaction.history)
        return Findings(
            verdicts=tuple(_reconciled(verdicts, conflicts)),
            citations=tuple(self._citations(plan)),
            self_contradiction=bool(conflicts or history),
        )

    def _citations(self, plan: _Plan) -> list[CitationFinding]:
        """Whether each cited source exists and, read alone, entails its claim (R10)."""
        cited = [(claim, label, _cited(label, plan)) for claim in plan.claims for label in claim.citations]
        pairs: list[Pair] = []
        for claim, _, place in cited:
            if place is not None:
                alone = retrieval.Index([plan.pool.sources[place]])
                query = retrieval.Query(claim=_readable(claim), question=plan.interaction.question)
                ((window, *_),) = alone.windows([query]) or [()]
                pairs.append(Pair(premise=window.text, claim=_readable(claim), question=plan.interaction.question))
        scores = iter(self._scores_or_none(pairs))
        found: list[CitationFinding] = []
        for claim, label, place in cited:
            if place is None:
                found.append(CitationFinding(claim_id=claim.id, label=label))
                continue
            score = next(scores, None)
            found.append(
                CitationFinding(
                    claim_id=claim.id,
                    label=label,
                    source_id=plan.pool.sources[place].source_id,
                    exists=True,
                    entails=None if score is None else score.entailment >= self._thresholds.support,
                )
            )
        return found

    def _scores_or_none(self, pairs: Sequence[Pair]) -> list[PairScore]:
        try:
            return self._scorer.score(pairs)
        except MemoryError:
            raise
        except Exception:  # a citation without a score is reported as undecided
            logger.exception("The scorer failed on citations", extra={"action": "scorer_failed"})
            return []


def _readable(claim: Claim) -> str:
    """The claim with what it needs to be understood alone."""
    return f"{claim.premise} {claim.text}" if claim.premise else claim.text


def _previous(answer: str, claims: Sequence[Claim]) -> dict[str, str]:
    """The text just before each claim, for pronouns; from the end of the span before it."""
    found: dict[str, str] = {}
    before = ""
    for claim in claims:
        found[claim.id] = before
        before = answer[claim.start : claim.end].strip()
    return found


def _window_score(question: _Question, score: PairScore, plan: _Plan) -> decision.Score:
    sources = plan.pool.sources
    # What the user stated is full evidence of what the user stated, however little the pool trusts users.
    trusts = (1.0 if sources[p].kind == "user_input" else sources[p].trust for p in question.window.sources)
    trust = max(trusts, default=0.0)
    return decision.Score(
        support=score.entailment * trust,
        contradiction=score.contradiction * trust,
        relevance=question.window.relevance,
        evidence=_cite(question, score, plan),
        elided=any(sources[place].elided for place in question.window.sources),
    )


def _cite(question: _Question, score: PairScore, plan: _Plan) -> tuple[Evidence, ...]:
    """The units of the window that share most with the claim, verbatim, at most three, in document order."""
    wanted = frozenset(terms(question.pair.claim))
    ranked = sorted(
        question.window.pieces,
        key=lambda piece: (-len(wanted.intersection(terms(piece.text))), piece.source, piece.start),
    )
    strength = max(score.entailment, score.contradiction)
    best = len(wanted.intersection(terms(ranked[0].text))) if ranked else 0
    chosen = [p for p in ranked[:3] if 2 * len(wanted.intersection(terms(p.text))) >= best] or ranked[:1]
    return tuple(
        plan.pool.sources[piece.source].span(piece.start, piece.end, strength)
        for piece in sorted(chosen, key=lambda piece: (piece.source, piece.start))
    )


def _reconciled(verdicts: Sequence[Verdict], conflicts: Sequence[consistency.Conflict]) -> list[Verdict]:
    """The later of two conflicting claims is contradicted when the earlier one is supported."""
    status = {verdict.claim_id: verdict.status for verdict in verdicts}
    lost = {c.later: c.reason for c in conflicts if status.get(c.earlier) == "supported"}
    return [
        msgspec.structs.replace(
            v,
            status="contradicted",
            confidence=0.75,
            supported_probability=0.25,
            reason=lost[v.claim_id],
            decided_by="check",
        )
        if v.claim_id in lost and v.status not in ("supported", "contradicted")
        else v
        for v in verdicts
    ]


def _cited(label: str, plan: _Plan) -> int | None:
    """Index of the cited source: by its id, else by its 1-based position among the passages."""
    ids = [source.source_id for source in plan.pool.sources]
    if label in ids:
        return ids.index(label)
    if not (label.isascii() and label.isdigit() and 1 <= int(label[:6]) <= len(plan.interaction.passages)):
        return None
    name = plan.interaction.passages[int(label[:6]) - 1].source_id
    return ids.index(name) if name in ids else None
