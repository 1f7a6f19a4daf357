"""Answer probabilities: a claim alone is its own answer; long answers are not punished for their length."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_worker.stages.calibration import AnswerCalibration, answer_probability, features

SOFT = AnswerCalibration(least=0.6, second=0.2, mean=0.2, size=0.8, intercept=0.0)
probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@given(probabilities, st.booleans())
def test_it_is_a_probability(values: list[float], calibrated: bool) -> None:
    found = answer_probability(values, SOFT if calibrated else None)

    assert found is not None
    assert 0 <= found <= 1


def test_nothing_measured_is_none() -> None:
    assert answer_probability([], SOFT) is None


@given(st.floats(0, 1))
def test_one_claim_is_its_own_answer(value: float) -> None:
    assert answer_probability([value], SOFT) == value


def test_without_calibration_the_weakest_claim_stands() -> None:
    assert answer_probability([0.9, 0.2, 0.7], None) == 0.2


def test_length_alone_costs_nothing_once_calibrated() -> None:
    short, long = answer_probability([0.6, 0.8], SOFT), answer_probability([0.6, *[0.8] * 9], SOFT)

    assert short is not None
    assert long is not None
    assert long > short


@given(probabilities, st.data())
def test_order_does_not_matter(values: list[float], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(values))

    first, second = answer_probability(values, SOFT), answer_probability(shuffled, SOFT)

    assert first == pytest.approx(second)


def test_features() -> None:
    least, second, mean, size = features([0.5, 0.9])

    assert least == 0.0
    assert second == pytest.approx(math.log(9))
    assert mean == pytest.approx(math.log(9) / 2)
    assert size == pytest.approx(math.log(2))


def test_a_short_answer_keeps_its_least_claim() -> None:
    late = AnswerCalibration(least=0.5, second=0.25, mean=0.25, size=0.3, intercept=0.0, from_claims=4)

    assert answer_probability([0.4, 0.9, 0.9], late) == 0.4
    assert (answer_probability([0.4, 0.9, 0.9, 0.9], late) or 0) > 0.5
