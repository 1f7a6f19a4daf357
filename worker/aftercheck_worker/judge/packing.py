"""What of the evidence goes into a prompt: all of it while it fits, else the stretches nearest to the claims (O-30).

A passage is cut at the ends of its units and marked as cut off, so that silence in it proves nothing. Quotes are
found in the stretch and moved back to the offsets of the whole passage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from aftercheck_schemas import Claim, Evidence, Judgement, Passage
from aftercheck_worker.text.passages import Unit, units
from aftercheck_worker.text.tokens import terms

MAX_CHARS: Final = 18_000
"""Of all passages of one prompt, about 6,000 tokens."""
LEAST_CHARS: Final = 400
"""A passage that would get less is left out."""


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """Passages of a prompt, in the order that the model saw, and where each begins in its whole passage."""

    passages: tuple[Passage, ...]
    offsets: dict[str, int]


def pack(passages: Sequence[Passage], claims: Sequence[Claim], limit: int = MAX_CHARS) -> Packed:
    """Choose and cut.

    Args:
        passages: usable evidence.
        claims: what has to be judged.
        limit: characters of all passages together.
    """
    if sum(len(passage.text) for passage in passages) <= limit:
        return Packed(passages=tuple(passages), offsets={})
    wanted = frozenset(term for claim in claims for term in terms(f"{claim.premise} {claim.text}"))
    ranked = sorted(range(len(passages)), key=lambda n: (-_shared(passages[n].text, wanted), n))
    left, kept, offsets = limit, dict[int, Passage](), dict[str, int]()
    for place in ranked:
        passage = passages[place]
        room = max(left // 2, LEAST_CHARS) if len(passage.text) > left else left
        if len(passage.text) > left < LEAST_CHARS:
            continue
        start, end = (0, len(passage.text)) if len(passage.text) <= room else _stretch(passage.text, wanted, room)
        if end > start:
            kept[place] = _cut(passage, start, end)
            offsets[passage.source_id] = start
            left -= end - start
    return Packed(passages=tuple(kept[place] for place in sorted(kept)), offsets=offsets)


def unpack(judgement: Judgement, passages: Sequence[Passage], offsets: Mapping[str, int]) -> Judgement:
    """Move the quotes of a judgement to the offsets of the whole passages."""
    if not any(offsets.values()):
        return judgement
    texts = {passage.source_id: passage.text for passage in passages}

    def moved(part: Evidence) -> Evidence:
        start, end = (place + offsets.get(part.source_id, 0) for place in (part.start, part.end))
        return msgspec.structs.replace(part, start=start, end=end, text=texts[part.source_id][start:end])

    return msgspec.structs.replace(
        judgement,
        claims=tuple(
            msgspec.structs.replace(claim, evidence=tuple(map(moved, claim.evidence))) for claim in judgement.claims
        ),
    )


def _shared(text: str, wanted: frozenset[str]) -> int:
    return len(wanted.intersection(terms(text)))


def _cut(passage: Passage, start: int, end: int) -> Passage:
    whole = (start, end) == (0, len(passage.text))
    return passage if whole else msgspec.structs.replace(passage, text=passage.text[start:end], elided=True)


def _stretch(text: str, wanted: frozenset[str], room: int) -> tuple[int, int]:
    """The run of whole units of at most `room` characters that shares most terms; earliest wins. Linear."""
    found: Sequence[Unit] = sorted(units(text), key=lambda unit: unit.start)
    worth = [_shared(unit.text, wanted) for unit in found]
    best, chosen, first, total = -1, (0, min(len(text), room)), 0, 0
    for last, unit in enumerate(found):
        total += worth[last]
        while first < last and unit.end - found[first].start > room:
            total -= worth[first]
            first += 1
        if unit.end - found[first].start <= room and total > best:
            best, chosen = total, (found[first].start, unit.end)
    return chosen
