"""Token classifiers in the manner of LettuceDetect (arXiv:2502.17125): unsupported spans of an answer in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from aftercheck_worker.models.base import ModelInfo, TokenSpan
from aftercheck_worker.models.torch_classifier import Floats, Row, TorchClassifier
from aftercheck_worker.models.torch_pair import pair_tokenizer

THRESHOLD = 0.5


class TorchTokenVerifier:
    """Finds spans of an answer that its passages do not support. Label 1 is "unsupported".

    Args:
        folder: a verified folder of `models.store`, with tokenizer.json.
        name, revision, sha256: identity, as locked.
        classifier: loaded from the folder by default.
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
        self._classifier = classifier or TorchClassifier(folder, "token")
        self._tokenizer = pair_tokenizer(folder, self._classifier.max_length)
        self._info = ModelInfo(
            name=name, revision=revision, sha256=sha256, parameters={"back_end": "torch", "task": "token"}
        )

    @property
    def info(self) -> ModelInfo:
        """Identity of the weights."""
        return self._info

    def spans(self, items: Sequence[tuple[Sequence[str], str, str]]) -> list[list[TokenSpan]]:
        """Return the unsupported spans for each (passages, question, answer), in order.

        Passages are cut when the whole is longer than the model reads, the answer never.
        """
        texts = [(prompt(passages, question), answer) for passages, question, answer in items]
        found: list[Any] = cast("Any", self._tokenizer).encode_batch(texts)
        logits = self._classifier.logits([Row(encoding.ids, encoding.type_ids) for encoding in found])
        return [
            joined(encoding.offsets, encoding.sequence_ids, one) for encoding, one in zip(found, logits, strict=True)
        ]


def prompt(passages: Sequence[str], question: str) -> str:
    """The first segment, in the words that these models were trained with."""
    listed = "\n".join(f"passage {number}: {text}" for number, text in enumerate(passages, 1))
    if not question:
        return listed
    return f"Briefly answer the following question:\n{question}\nBear in mind that your response should be strictly based on the following {len(passages)} passages:\n{listed}\noutput:"  # noqa: E501


def joined(
    offsets: Sequence[tuple[int, int]], segments: Sequence[int | None], logits: Floats, threshold: float = THRESHOLD
) -> list[TokenSpan]:
    """Join runs of unsupported tokens of the answer; the score of a span is its highest token's."""
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    unsupported = (shares / shares.sum(axis=1, keepdims=True))[:, 1]
    out: list[TokenSpan] = []
    last = -2
    for place, (start, end) in enumerate(offsets):
        score = float(unsupported[place])
        if segments[place] != 1 or score <= threshold or end <= start:
            continue
        if out and last == place - 1:
            out[-1] = TokenSpan(start=out[-1].start, end=end, score=max(out[-1].score, score))
        else:
            out.append(TokenSpan(start=start, end=end, score=score))
        last = place
    return out
