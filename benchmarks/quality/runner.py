"""Runs items through the real pipeline and keeps every probability, so that an interrupted run resumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from aftercheck_worker.evaluate import BadRow, evaluate
from aftercheck_worker.evaluators import Evaluator
from benchmarks.quality.items import Item
from benchmarks.quality.protocol import Scored


class Kept(msgspec.Struct, frozen=True):
    """One finished item in the results file."""

    id: str
    probability: float | None


def run(items: Sequence[Item], evaluator: Evaluator, kept: Path) -> Iterator[Scored]:
    """Score items in order, taking what `kept` already holds and appending what is new.

    Args:
        items: what to score.
        evaluator: the evaluator under test; `kept` should be named after its version.
        kept: JSONL file of finished items.

    Raises:
        ValueError: the pipeline refused an item.
    """
    done = _read(kept)
    missing = [item for item in items if item.id not in done]
    with kept.open("ab") as stream:
        for item, probability in _score(missing, evaluator):
            done[item.id] = probability
            stream.write(msgspec.json.encode(Kept(item.id, probability)) + b"\n")
    for item in items:
        yield Scored(
            id=item.id,
            dataset=item.dataset,
            stratum=item.stratum,
            lang=item.lang,
            group=item.group,
            supported=item.supported,
            probability=done[item.id],
        )


def _score(items: Sequence[Item], evaluator: Evaluator) -> Iterator[tuple[Item, float | None]]:
    for item, result in zip(items, evaluate(_lines(items), evaluator), strict=True):
        if isinstance(result, BadRow):
            raise ValueError(f"{item.id}: {result.why}")
        yield item, result.evaluation.supported_probability


def _lines(items: Iterable[Item]) -> Iterator[bytes]:
    for item in items:
        row = {"id": item.id, "query": item.query, "context": list(item.context), "response": item.response}
        yield msgspec.json.encode(row)


def _read(kept: Path) -> dict[str, float | None]:
    if not kept.exists():
        return {}
    found: dict[str, float | None] = {}
    for line in kept.read_bytes().splitlines():
        try:
            row = msgspec.json.decode(line, type=Kept)
        except msgspec.DecodeError:
            continue  # the last line of an interrupted run may be half written
        found[row.id] = row.probability
    return found
