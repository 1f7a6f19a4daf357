"""Which answers go to the judge: the band, conflicts, the audit sample; nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import Evaluation, Verdict
from aftercheck_schemas.evaluation import DecidedBy
from aftercheck_schemas.vocabulary import Outcome
from aftercheck_worker.stages.judging.routing import Band, Route, drawn, route

BAND = Band(low=0.3, high=0.7)


def verdict(
    probability: float | None = 0.95, *, by: DecidedBy = "verifier", reason: str = "entailed", conflict: bool = False
) -> Verdict:
    return Verdict(
        claim_id="c1",
        status="supported",
        confidence=0.9,
        supported_probability=probability,
        reason=reason,
        decided_by=by,
        conflict=conflict,
    )


def evaluation(*verdicts: Verdict, outcome: Outcome = "grounded", trace_id: str = "a" * 32) -> Evaluation:
    return Evaluation(
        trace_id=trace_id, span_id="b", outcome=outcome, verdicts=verdicts, evaluator="e", evaluator_version="v"
    )


def routed(*verdicts: Verdict, audit: float = 0.0, outcome: Outcome = "grounded") -> Route | None:
    return route(evaluation(*verdicts, outcome=outcome), BAND, share="band", audit=audit)


@pytest.mark.parametrize("probability", [0.3, 0.5, 0.7])
def test_the_band_is_inclusive_and_certain_to_be_judged(probability: float) -> None:
    assert routed(verdict(probability)) == Route(why="band", audit=False, probability=1.0, claims=frozenset({"c1"}))


@pytest.mark.parametrize("probability", [0.0, 0.29, 0.71, 1.0, None])
def test_outside_the_band_nobody_is_asked(probability: float | None) -> None:
    assert routed(verdict(probability)) is None


def test_conflicts_are_in_the_band_whatever_their_probability() -> None:
    assert routed(verdict(0.9, reason="conflicting_sources")) is not None
    assert routed(verdict(0.1, by="check", conflict=True)) is not None
    assert routed(verdict(0.5, by="check")) is None


@pytest.mark.req("S15")
@pytest.mark.parametrize("outcome", ["abstained", "no_claims", "not_assessable"])
def test_degenerate_answers_are_settled_before_the_judge(outcome: Outcome) -> None:
    assert routed(verdict(0.5), outcome=outcome, audit=1.0) is None


def test_without_any_evidence_there_is_nothing_to_quote() -> None:
    assert routed(verdict(0.2, by="policy"), audit=1.0) is None
    assert route(evaluation(verdict(0.2, by="policy")), BAND, share="all", audit=1.0) is None


def test_all_takes_every_claim() -> None:
    found = route(evaluation(verdict(0.99)), BAND, share="all", audit=0.0)

    assert found == Route(why="all", audit=True, probability=1.0, claims=frozenset({"c1"}))


def test_the_audit_keeps_its_share_decides_nothing_and_carries_its_probability() -> None:
    ids = [f"{number:032x}" for number in range(4000)]
    found = [route(evaluation(verdict(), trace_id=i), BAND, share="band", audit=0.1) for i in ids]

    kept = [one for one in found if one is not None]
    assert 320 <= len(kept) <= 480
    assert {(one.why, one.probability, one.claims) for one in kept} == {("audit", 0.1, frozenset())}


@given(st.uuids(version=4), st.floats(0, 1), st.floats(0, 1))
def test_draws_are_nested_and_the_same_everywhere(identity: object, first: float, second: float) -> None:
    low, high = sorted((first, second))

    assert drawn(str(identity), "audit", high) or not drawn(str(identity), "audit", low)
    assert drawn(str(identity), "audit", 1.0)
    assert not drawn(str(identity), "audit", 0.0)
