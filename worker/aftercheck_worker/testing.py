"""Fakes for tests, ours and yours: a factory, a scripted scorer and verifier, a recording queue."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from aftercheck_schemas import Claim, Interaction, Passage, Verdict
from aftercheck_schemas.vocabulary import ClaimStatus
from aftercheck_worker.evaluators import Evaluator, assemble
from aftercheck_worker.models.base import ModelInfo, Pair, PairScore
from aftercheck_worker.stages.scoring import Policy
from aftercheck_worker.stages.verification import Findings, Item

_ids = itertools.count(1)


def interaction(
    answer: str,
    *passages: str | Passage,
    question: str = "",
    app: str = "test",
    trace_id: str = "",
    span_id: str = "",
) -> Interaction:
    """Return an interaction with fresh ids. Passages given as text are named 1, 2, ..."""
    number = next(_ids)
    return Interaction(
        trace_id=trace_id or f"{number:032x}",
        span_id=span_id or f"{number:016x}",
        app=app,
        question=question,
        answer=answer,
        passages=tuple(
            passage if isinstance(passage, Passage) else Passage(source_id=str(place), text=passage)
            for place, passage in enumerate(passages, start=1)
        ),
        context_source="recorded" if passages else "none",
        context_confidence=1.0 if passages else 0.0,
    )


class ScriptedScorer:
    """`PairScorer` that answers from a table of (premise, claim); everything else is neutral. Keeps what it saw."""

    info = ModelInfo(name="scripted", revision="1")

    def __init__(self, scores: Mapping[tuple[str, str], PairScore]) -> None:
        self._scores = dict(scores)
        self.calls: list[tuple[Pair, ...]] = []

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        """Return the scripted scores."""
        self.calls.append(tuple(pairs))
        neutral = PairScore(entailment=0.0, neutral=1.0, contradiction=0.0)
        return [self._scores.get((pair.premise, pair.claim), neutral) for pair in pairs]


class ScriptedVerifier:
    """`Verifier` that gives each claim the status its text is scripted with, `default` otherwise.

    A text mapped to an exception raises it, as a crashing model would.
    """

    models = (ModelInfo(name="scripted", revision="1"),)

    def __init__(
        self,
        statuses: Mapping[str, ClaimStatus | Exception] | None = None,
        *,
        default: ClaimStatus = "supported",
        confidence: float = 1.0,
    ) -> None:
        self._statuses: dict[str, ClaimStatus | Exception] = {**statuses} if statuses else {}
        self._default: ClaimStatus = default
        self._confidence = confidence
        self.batches: list[int] = []

    @property
    def parameters(self) -> dict[str, object]:
        """What was scripted."""
        return {"default": self._default, "confidence": self._confidence}

    def verify(self, items: Sequence[Item]) -> list[Findings]:
        """Return the scripted verdicts."""
        self.batches.append(len(items))
        return [
            Findings(verdicts=tuple(self._verdict(claim) for claim in item.claims if claim.verifiable))
            for item in items
        ]

    def _verdict(self, claim: Claim) -> Verdict:
        status = self._statuses.get(claim.text, self._default)
        if isinstance(status, Exception):
            raise status
        return Verdict(claim_id=claim.id, status=status, confidence=self._confidence, reason="scripted")


def evaluator(verifier: ScriptedVerifier | None = None, *, name: str = "scripted") -> Evaluator:
    """Return an evaluator around a scripted verifier."""
    return assemble(name, verifier or ScriptedVerifier(), policy=Policy())


class RecordingQueue:
    """Stands in for `app.send_check`: keeps the messages instead of sending them."""

    def __init__(self) -> None:
        self.messages: list[tuple[tuple[int, ...], bool]] = []

    def __call__(self, ids: Sequence[int], high: bool = False) -> None:
        """Keep one message."""
        self.messages.append((tuple(ids), high))
