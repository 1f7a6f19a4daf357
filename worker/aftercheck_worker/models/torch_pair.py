"""Any cross-encoder of transformers as a pair scorer: NLI with three labels, grounding with two, or one logit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from tokenizers import Tokenizer

from aftercheck_worker.errors import ModelRefused
from aftercheck_worker.models.base import ModelInfo, Pair, PairScore
from aftercheck_worker.models.torch_classifier import Floats, Row, TorchClassifier

_SUPPORT: Final = ("entail", "support", "consistent", "grounded", "faithful")
_AGAINST: Final = ("contradict", "refut")
_NOT: Final = ("not", "non", "un", "in", "no_")


class TorchPairScorer:
    """Scores (premise, claim) pairs; the premise is cut where a pair is too long, never the claim.

    Labels are read by their names in config.json ("entailment", "supported", ...; "not_entailment" is not one). A
    model with two labels, or with one logit, says nothing of contradiction: it stays 0.

    Args:
        folder: a verified folder of `models.store`, with tokenizer.json.
        name, revision, sha256: identity, as locked.
        classifier: loaded from the folder by default.

    Raises:
        ModelRefused: no label means support.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str,
        revision: str,
        sha256: str = "",
        classifier: TorchClassifier | None = None,
    ) -> None:
        self._classifier = classifier or TorchClassifier(folder, "pair")
        self._tokenizer = pair_tokenizer(folder, self._classifier.max_length)
        self._info = ModelInfo(
            name=name, revision=revision, sha256=sha256, parameters={"back_end": "torch", "task": "pair"}
        )
        self._support, self._against = roles(self._classifier.labels, name)

    @property
    def info(self) -> ModelInfo:
        """Identity of the weights."""
        return self._info

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        """Return one score per pair, in order; the question, where there is one, stands in front of the claim."""
        texts = [(pair.premise, f"{pair.question} {pair.claim}" if _short(pair) else pair.claim) for pair in pairs]
        found = cast("Any", self._tokenizer).encode_batch(texts)
        rows = [Row(encoding.ids, encoding.type_ids) for encoding in found]
        return [self._scored(logits) for logits in self._classifier.logits(rows)]

    def _scored(self, logits: Floats) -> PairScore:
        if len(logits) == 1:
            support = float(1 / (1 + np.exp(-np.clip(logits[0], -30, 30))))
            return PairScore(entailment=support, neutral=1 - support, contradiction=0.0)
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        support = float(shares[self._support])
        against = float(shares[self._against]) if self._against is not None else 0.0
        return PairScore(entailment=support, contradiction=against, neutral=max(0.0, 1 - support - against))


def roles(labels: Sequence[str], model: str) -> tuple[int, int | None]:
    """Return the places of "supported" and of "contradicted" among the labels.

    Raises:
        ModelRefused: several labels, and none or more than one of them means support.
    """
    if len(labels) == 1:
        return 0, None
    low = [label.lower() for label in labels]
    support = [n for n, label in enumerate(low) if any(w in label for w in _SUPPORT) and not label.startswith(_NOT)]
    against = [n for n, label in enumerate(low) if any(word in label for word in _AGAINST)]
    if len(support) != 1:
        raise ModelRefused(
            f"Model {model} has no label that means support",
            why=f"its labels are {', '.join(labels)}",
            fix="name one of them `entailment` in id2label of config.json, and pin the folder again",
        )
    return support[0], against[0] if against else None


def pair_tokenizer(folder: Path, max_length: int) -> Tokenizer:
    """Tokenizer of a folder, cutting only the first text."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    cast("Any", tokenizer).enable_truncation(max_length, strategy="only_first")
    return tokenizer


def _short(pair: Pair) -> bool:
    """An answer of three words or fewer says nothing without its question."""
    return bool(pair.question) and len(pair.claim.split()) <= 3
