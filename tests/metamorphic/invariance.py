"""Changes that leave the meaning as it was, and how far verdicts move under them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from aftercheck_schemas.interaction import Interaction, Passage
from aftercheck_worker.stages.claims import split
from aftercheck_worker.stages.verification import Item, Verifier
from tests.metamorphic.builder import Pair

IRRELEVANT: Final = (
    "Ceramic glazes are fired twice, the second time at a lower heat.",
    "The orchestra tuned before the curtain rose.",
    "Willow bark was chewed against pain long before tablets.",
)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Passages and an answer over them."""

    passages: tuple[str, ...]
    answer: str


Change = Callable[[Asked], Asked]


def plain(pair: Pair, answer: str) -> Asked:
    """One sentence per passage."""
    sentences = [f"{part.rstrip('.')}." for part in pair.passage.split(". ")]
    return Asked(passages=tuple(sentences), answer=answer)


def _order(asked: Asked) -> Asked:
    passages = list(asked.passages)
    random.Random(1).shuffle(passages)
    return msgspec.structs.replace(asked, passages=tuple(passages))


def _more(asked: Asked) -> Asked:
    return msgspec.structs.replace(asked, passages=(IRRELEVANT[0], *asked.passages, *IRRELEVANT[1:]))


def _answer(change: Callable[[str], str]) -> Change:
    return lambda asked: msgspec.structs.replace(asked, answer=change(asked.answer))


CHANGES: Final[dict[str, Change]] = {
    "passage order": _order,
    "irrelevant passages": _more,
    "case": _answer(lambda text: text[:1].lower() + text[1:]),
    "bold": _answer(lambda text: f"**{text}**"),
    "bullet": _answer(lambda text: f"* {text}"),
    "blank lines": _answer(lambda text: f"\n{text}\n\n"),
    "curly quotes": _answer(lambda text: text.replace("'", "’")),
    "non-breaking space": _answer(lambda text: text.replace(" ", "\u00a0", 1)),
    "zero width": _answer(lambda text: f"{text[:-1]}\u200b{text[-1:]}"),
}


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Share of verdicts whose status stayed, and the greatest change of a probability among them, 0..1 each."""

    same: float
    furthest: float
    within: float
    examples: tuple[str, ...]


def moved(verifier: Verifier, before: Sequence[Asked], change: Change, near: float = 0.02) -> Moved:
    """Compare the verdicts before and after a change."""
    left, right = _verdicts(verifier, before), _verdicts(verifier, [change(asked) for asked in before])
    kept = [[s for s, _ in a] == [s for s, _ in b] for a, b in zip(left, right, strict=True)]
    far = [
        max((abs(p - q) for (_, p), (_, q) in zip(a, b, strict=True)), default=0.0)
        for a, b, same in zip(left, right, kept, strict=True)
        if same
    ]
    return Moved(
        same=sum(kept) / len(kept),
        furthest=max(far, default=0.0),
        within=sum(f <= near for f in far) / max(1, len(far)),
        examples=tuple(before[place].answer for place, same in enumerate(kept) if not same)[:4],
    )


def _verdicts(verifier: Verifier, asked: Sequence[Asked]) -> list[list[tuple[str, float]]]:
    found = verifier.verify([_item(one) for one in asked])
    return [[(v.status, v.supported_probability or 0.0) for v in findings.verdicts] for findings in found]


def _item(asked: Asked) -> Item:
    interaction = Interaction(
        trace_id="0" * 32,
        span_id="0" * 16,
        app="metamorphic",
        answer=asked.answer,
        passages=tuple(Passage(source_id=f"d{place}", text=text) for place, text in enumerate(asked.passages)),
    )
    return Item(interaction=interaction, claims=split(interaction))
