"""Flips are caught, twins are kept, and what changes no meaning changes no verdict."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from aftercheck_worker.engine import Engine
from aftercheck_worker.models.containment import ContainmentScorer
from aftercheck_worker.stages.verification import Item
from tests.metamorphic.builder import OPERATORS, PAIRS, Pair, build
from tests.metamorphic.measure import item, measure, report


def test_the_builder_is_even_and_repeatable() -> None:
    pairs = build()
    assert len(pairs) == PAIRS
    assert pairs == build()
    assert {pair.operator for pair in pairs} == set(OPERATORS)
    assert all(pair.flip != pair.twin and pair.flip not in pair.passage for pair in pairs)


@pytest.mark.req("R36", "R37")
def test_flips_and_twins_without_a_model() -> None:
    result = measure(Engine(ContainmentScorer()), build())
    report(f"caught {result.caught:.3f} kept {result.kept:.3f} both {result.both:.3f}")
    assert result.caught >= 0.88
    assert result.kept >= 0.88
    assert result.both >= 0.80


def statuses(items: list[Item]) -> list[list[str]]:
    return [[v.status for v in f.verdicts] for f in Engine(ContainmentScorer()).verify(items)]


def reordered(pair: Pair) -> str:
    sentences = pair.passage.split(". ")
    random.Random(1).shuffle(sentences)
    return ". ".join(s.rstrip(".") for s in sentences) + "."


CHANGES: dict[str, Callable[[Pair, str], tuple[str, str]]] = {
    "bold": lambda pair, claim: (pair.passage, f"**{claim}**"),
    "bullet": lambda pair, claim: (pair.passage, f"* {claim}"),
    "curly and non-breaking": lambda pair, claim: (pair.passage.replace(" ", "\u00a0", 1), claim.replace("'", "’")),
    "order": lambda pair, claim: (reordered(pair), claim),
    "prefix": lambda pair, claim: (pair.passage, claim + "\n\n"),
    "zero width": lambda pair, claim: (pair.passage, claim[:-1] + "\u200b" + claim[-1:]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_no_meaning_changes_no_status(change: str) -> None:
    pairs = build(seed=5, count=90)
    claims = [(pair, text) for pair in pairs for text in (pair.flip, pair.twin)]
    before = statuses([item(pair.passage, text) for pair, text in claims])
    after = statuses([item(*CHANGES[change](pair, text)) for pair, text in claims])
    same = sum(a == b for a, b in zip(before, after, strict=True))
    report([claims[i][1] for i in range(len(claims)) if before[i] != after[i]][:4])
    assert same / len(claims) >= 0.99
