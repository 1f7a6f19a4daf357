"""Protocols of the models behind the stages. Each back end (onnx, torch, lexical, openai_compatible) fills some.

All are batch in, batch out; none keeps state that changes a later score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A premise (fused evidence window) and a claim to test against it.

    `question` and `previous` are context for the claim and never evidence.
    """

    premise: str
    claim: str
    question: str = ""
    previous: str = ""


class PairScore(msgspec.Struct, frozen=True, kw_only=True):
    """Raw scores of one pair, 0..1 each; the three sum to 1.

    `spans` are character ranges of the claim that the premise does not support, with their scores.
    """

    entailment: float
    neutral: float
    contradiction: float
    spans: tuple[tuple[int, int, float], ...] = ()


class TokenSpan(msgspec.Struct, frozen=True, kw_only=True):
    """An unsupported span of an answer: character offsets, end exclusive, score 0..1."""

    start: int
    end: int
    score: float
    label: str = "unsupported"


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What identifies a model inside `evaluator_version`: name, revision, sha256 of the weights, parameters."""

    name: str
    revision: str
    sha256: str = ""
    parameters: dict[str, str] = {}


@runtime_checkable
class PairScorer(Protocol):
    """Scores (premise, claim) pairs."""

    @property
    def info(self) -> ModelInfo:
        """Identity of the model."""
        ...

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        """Return one score per pair, in order."""
        ...


@runtime_checkable
class TokenVerifier(Protocol):
    """Finds unsupported spans of a whole answer in one pass."""

    @property
    def info(self) -> ModelInfo:
        """Identity of the model."""
        ...

    def spans(self, items: Sequence[tuple[Sequence[str], str, str]]) -> list[list[TokenSpan]]:
        """Return the unsupported spans for each (passages, question, answer)."""
        ...


@runtime_checkable
class Encoder(Protocol):
    """Embeds texts."""

    @property
    def info(self) -> ModelInfo:
        """Identity of the model."""
        ...

    def encode(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one unit-length vector per text; all of one dimension."""
        ...


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """One reply of a language model. `cut` is True when it stopped at its token limit."""

    text: str
    cut: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


class GeneratorError(Exception):
    """A call that gave no reply.

    Attributes:
        reason: `rate_limited`, `unavailable`, `deadline`, `refused` (a 4xx that a retry cannot mend), `untrusted` (a
            TLS certificate that is not accepted) or `too_large`.
        retry_after: seconds that the endpoint asked us to wait, None when it did not say.
    """

    def __init__(self, reason: str, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.retry_after = retry_after


@runtime_checkable
class Generator(Protocol):
    """Asks a language model for one completion."""

    @property
    def info(self) -> ModelInfo:
        """Identity of the model, decoding parameters and structured-output mode included."""
        ...

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """Return one reply.

        Args:
            system: fixed instructions.
            user: the data message.
            schema: JSON schema of the reply, used when the endpoint can enforce it.
            max_tokens: limit of the reply.
            seed: 0 asks at temperature 0; other values ask for another sample.

        Raises:
            GeneratorError: there is no reply.
        """
        ...
