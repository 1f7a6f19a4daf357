"""How many flips a verifier catches and how many twins it keeps.

`python -m tests.metamorphic.measure [--weights] [-v]`: the engine without a model, or with the default weights.
"""

from __future__ import annotations

import sys
from collections import Counter

import msgspec

from aftercheck_schemas.interaction import Interaction, Passage
from aftercheck_worker import evaluators, settings
from aftercheck_worker.engine import Engine
from aftercheck_worker.models.containment import ContainmentScorer
from aftercheck_worker.stages.claims import split
from aftercheck_worker.stages.verification import Item, Verifier
from aftercheck_worker.text.lexicon import LANGUAGES
from tests.metamorphic.builder import OPERATORS, Pair, build


def report(*parts: object) -> None:
    """Write one line to standard output."""
    sys.stdout.write(" ".join(map(str, parts)) + "\n")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Shares over all pairs, 0..1, and the misses."""

    caught: float
    kept: float
    both: float
    flips: dict[str, float]
    twins: dict[str, float]
    missed: tuple[tuple[str, Pair], ...]


def item(passage: str, answer: str) -> Item:
    """Return an answer to verify against one passage."""
    interaction = Interaction(
        trace_id="0" * 32,
        span_id="0" * 16,
        app="metamorphic",
        answer=answer,
        passages=(Passage(source_id="d1", text=passage),),
    )
    return Item(interaction=interaction, claims=split(interaction))


def measure(verifier: Verifier, pairs: list[Pair]) -> Result:
    """Run both claims of every pair through a verifier."""
    findings = verifier.verify([item(pair.passage, text) for pair in pairs for text in (pair.flip, pair.twin)])
    good = [bool(f.verdicts) and all(v.status == "supported" for v in f.verdicts) for f in findings]
    caught, kept = [not g for g in good[::2]], good[1::2]
    size = Counter((p.operator, p.language) for p in pairs)
    flips: Counter[tuple[str, str]] = Counter()
    twins: Counter[tuple[str, str]] = Counter()
    missed: list[tuple[str, Pair]] = []
    for pair, c, k in zip(pairs, caught, kept, strict=True):
        flips[pair.operator, pair.language] += c
        twins[pair.operator, pair.language] += k
        missed += [("flip", pair)] * (not c) + [("twin", pair)] * (not k)
    return Result(
        caught=sum(caught) / len(pairs),
        kept=sum(kept) / len(pairs),
        both=sum(c and k for c, k in zip(caught, kept, strict=True)) / len(pairs),
        flips={"/".join(key): flips[key] / size[key] for key in size},
        twins={"/".join(key): twins[key] / size[key] for key in size},
        missed=tuple(missed),
    )


def main() -> None:
    """Print the table, and with `-v` what was missed."""
    verifier: Verifier = Engine(ContainmentScorer())
    if "--weights" in sys.argv:
        verifier = evaluators.resolve(evaluators.DEFAULT, settings.load({})).verifier
    result = measure(verifier, build())
    report(f"flips caught {result.caught:.3f}  twins kept {result.kept:.3f}  both {result.both:.3f}")
    for operator in OPERATORS:
        cells = [
            f"{lang} {result.flips[f'{operator}/{lang}']:.2f}/{result.twins[f'{operator}/{lang}']:.2f}"
            for lang in LANGUAGES
        ]
        report(f"  {operator:<11}", "  ".join(cells))
    if "-v" in sys.argv:
        for kind, pair in result.missed:
            report(
                kind, pair.language, pair.operator, "|", pair.passage, "|", pair.flip if kind == "flip" else pair.twin
            )


if __name__ == "__main__":
    main()
