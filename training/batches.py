"""Batches by token budget. The order depends on (seed, epoch) alone, so a run can resume anywhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from .encode import UNKNOWN, Encoded

POOL = 4096


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded tensors: ids, types, mask, tokens (n, length); support, contradiction (n); twins (k, 2) positions."""

    ids: Tensor
    types: Tensor
    mask: Tensor
    tokens: Tensor
    support: Tensor
    contradiction: Tensor
    twins: Tensor


def _groups(data: Encoded) -> list[list[int]]:
    """Row numbers grouped by twin pair; lone rows alone."""
    by_pair: dict[int, list[int]] = {}
    out: list[list[int]] = []
    for index, pair in enumerate(data.pair.tolist()):
        if pair < 0:
            out.append([index])
        else:
            by_pair.setdefault(pair, []).append(index)
    return out + list(by_pair.values())


def epoch_order(data: Encoded, seed: int, epoch: int, budget: int) -> list[list[int]]:
    """Batches of row numbers, each at most `budget` tokens after padding; twins stay together."""
    random = np.random.default_rng([seed, epoch])
    groups = _groups(data)
    random.shuffle(groups)
    lengths = np.diff(data.offsets)
    batches: list[list[int]] = []
    for start in range(0, len(groups), POOL):
        pool = sorted(groups[start : start + POOL], key=lambda g: int(lengths[g].max()))
        current: list[int] = []
        for group in pool:
            if current and (len(current) + len(group)) * int(lengths[group].max()) > budget:
                batches.append(current)
                current = []
            current = current + group
        batches.append(current)
    random.shuffle(batches)
    return batches


def _twins(data: Encoded, rows: list[int]) -> list[tuple[int, int]]:
    """(position of the supported twin, position of the unsupported one) for every full pair of the batch."""
    seen: dict[int, dict[int, int]] = {}
    for position, row in enumerate(rows):
        if data.pair[row] >= 0:
            seen.setdefault(int(data.pair[row]), {})[int(data.support[row])] = position
    return [(sides[1], sides[0]) for sides in seen.values() if len(sides) == 2]


def make_batch(data: Encoded, rows: list[int]) -> Batch:
    """Pad the named rows to the longest of them."""
    lengths = [int(data.offsets[r + 1] - data.offsets[r]) for r in rows]
    shape = (len(rows), max(lengths))
    ids, types, mask = (np.zeros(shape, np.int64) for _ in range(3))
    tokens = np.full(shape, UNKNOWN, np.int64)
    for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        part = slice(data.offsets[row], data.offsets[row + 1])
        ids[i, :length] = data.ids[part]
        tokens[i, :length] = data.tokens[part]
        types[i, data.start_b[row] : length] = 1
        mask[i, :length] = 1
    return Batch(
        ids=torch.from_numpy(ids),
        types=torch.from_numpy(types),
        mask=torch.from_numpy(mask),
        tokens=torch.from_numpy(tokens),
        support=torch.from_numpy(data.support[rows].astype(np.float32)),
        contradiction=torch.from_numpy(data.contradiction[rows].astype(np.float32)),
        twins=torch.tensor(_twins(data, rows), dtype=torch.long).reshape(-1, 2),
    )
