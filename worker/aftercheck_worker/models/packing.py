"""Batches by token budget: rows of nearly equal length together, so that little of the work is padding."""

from __future__ import annotations

from collections.abc import Sequence

DEFAULT_MAX_TOKENS = 4096
DEFAULT_MAX_ROWS = 64
DEFAULT_MAX_PADDING = 1.15
OPEN_BATCHES = 16
"""Flat batches that may still take a row: the search stays linear in rows."""


def plan(
    lengths: Sequence[int],
    *,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    max_rows: int = DEFAULT_MAX_ROWS,
    max_padding: float = DEFAULT_MAX_PADDING,
) -> list[list[int]]:
    """Split row indices into batches, longest first.

    Args:
        lengths: tokens of each row, >= 1.
        max_tokens: rows x longest row of a batch; a longer single row gets a batch of its own.
        max_rows: rows of a batch.
        max_padding: padded tokens / real tokens of each batch.

    Returns:
        Batches of indices into `lengths`; every index exactly once. Longest first, so that memory peaks at once.
    """
    batches: list[list[int]] = []
    batch: list[int] = []
    real = 0
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        longest = lengths[batch[0]] if batch else lengths[index]
        padded = longest * (len(batch) + 1)
        if batch and (
            padded > max_tokens or len(batch) == max_rows or padded > max_padding * (real + lengths[index])
        ):
            batches.append(batch)
            batch, real = [], 0
        batch.append(index)
        real += lengths[index]
    return [*batches, batch] if batch else batches


def padded_ratio(lengths: Sequence[int], batches: Sequence[Sequence[int]]) -> float:
    """Padded tokens / real tokens over all batches; 1.0 is no padding."""
    padded = sum(max(lengths[i] for i in batch) * len(batch) for batch in batches)
    return padded / sum(lengths) if lengths else 1.0


def fill(lengths: Sequence[int], max_tokens: int = DEFAULT_MAX_TOKENS) -> list[list[int]]:
    """Split row indices into flat batches without padding: longest first, each as full as the budget allows.

    Args:
        lengths: tokens of each row, >= 1.
        max_tokens: sum of the lengths of a batch; a longer single row gets a batch of its own.
    """
    batches: list[list[int]] = []
    room: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        newest = range(max(0, len(room) - OPEN_BATCHES), len(room))
        place = next((n for n in newest if lengths[index] <= room[n]), None)
        if place is None:
            batches.append([])
            room.append(max_tokens)
            place = len(batches) - 1
        batches[place].append(index)
        room[place] -= lengths[index]
    return batches
