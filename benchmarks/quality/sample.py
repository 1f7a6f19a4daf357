"""Choose rows for a shorter run: whole contexts, so that the bootstrap stays honest; deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from benchmarks.quality.items import Item


def by_context(items: Sequence[Item], rows: int) -> list[Item]:
    """Return about `rows` items by taking contexts in the order of their hash; all of them for rows <= 0."""
    if rows <= 0 or rows >= len(items):
        return list(items)
    strata = sorted({item.stratum for item in items})
    share = max(1, rows // len(strata))
    chosen: list[Item] = []
    for stratum in strata:
        part = [item for item in items if item.stratum == stratum]
        ranked = sorted({item.group for item in part}, key=_rank)
        taken: set[str] = set()
        count = 0
        for group in ranked:
            if count >= share:
                break
            taken.add(group)
            count += sum(item.group == group for item in part)
        chosen += [item for item in part if item.group in taken]
    return chosen


def _rank(group: str) -> bytes:
    return blake2b(group.encode(), digest_size=8, key=b"quality").digest()
