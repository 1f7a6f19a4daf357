"""The training objective, and the loss of a predictor that knows only the label prior."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from .batches import Batch

SMOOTHING = 0.05
CONTRADICTION_WEIGHT = 0.4
TWIN_WEIGHT = 0.3
TOKEN_WEIGHT = 0.3


def support_loss(logits: Tensor, support: Tensor) -> Tensor:
    """Smoothed binary cross-entropy of the support head; logits, support (n)."""
    target = support * (1 - 2 * SMOOTHING) + SMOOTHING
    return binary_cross_entropy_with_logits(logits, target)


def _masked(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy where the label is known (>= 0); 0 where none is."""
    known = labels >= 0
    if not bool(known.any()):
        return logits.sum() * 0.0
    return binary_cross_entropy_with_logits(logits[known], labels[known].float())


def total_loss(rows: Tensor, tokens: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """(whole objective, support part). rows (n, 2), tokens (n, length): the model's logits in fp32."""
    support = support_loss(rows[:, 0], batch.support)
    loss = support + CONTRADICTION_WEIGHT * _masked(rows[:, 1], batch.contradiction)
    loss = loss + TOKEN_WEIGHT * _masked(tokens, batch.tokens)
    if len(batch.twins):
        margin = rows[batch.twins[:, 0], 0] - rows[batch.twins[:, 1], 0]
        loss = loss + TWIN_WEIGHT * softplus(-margin).mean()
    return loss, support.detach()


def prior_loss(share: float) -> float:
    """Smoothed cross-entropy of the constant predictor when `share` of the rows are supported."""
    p = min(max(share * (1 - 2 * SMOOTHING) + SMOOTHING, 1e-6), 1 - 1e-6)
    return -(p * math.log(p) + (1 - p) * math.log(1 - p))


@torch.no_grad()
def accuracy(logits: Tensor, support: Tensor) -> float:
    """Share of rows on the right side of 0."""
    return float(((logits > 0) == (support > 0.5)).float().mean())
