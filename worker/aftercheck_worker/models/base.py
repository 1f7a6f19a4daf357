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


@runtime_checkable
class Generator(Protocol):
    """Asks a language model for one completion."""

    @property
    def info(self) -> ModelInfo:
        """Identity of the model, decoding parameters included."""
        ...

    def generate(self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int) -> str:
        """Return the raw reply.

        Raises:
            DependencyUnavailable: the endpoint did not answer inside its deadline.
        """
        ...
