"""The protocol: strata first, one threshold, missing is wrong in both classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.quality import floor, table
from benchmarks.quality.items import Item
from benchmarks.quality.protocol import Scored, auc, balanced_accuracy, draws, ece, interval, report, set_score


def row(number: int, supported: bool, probability: float | None, stratum: str = "a") -> Scored:
    return Scored(
        id=str(number),
        dataset="d",
        stratum=stratum,
        lang="en",
        group=f"{stratum}{number // 4}",
        supported=supported,
        probability=probability,
    )


def rows(pairs: Sequence[tuple[bool, float | None]], stratum: str = "a") -> list[Scored]:
    return [row(i, supported, probability, stratum) for i, (supported, probability) in enumerate(pairs)]


def test_a_stratum_cannot_buy_accuracy_by_its_prior() -> None:
    easy = rows([(True, 0.9)] * 9 + [(False, 0.9)], "mostly supported")
    hard = rows([(False, 0.1)] * 9 + [(True, 0.1)], "mostly not")

    assert balanced_accuracy([*easy, *hard]) == pytest.approx(0.9)
    assert set_score([*easy, *hard]) == pytest.approx(0.5)


@pytest.mark.req("P7")
def test_missing_is_wrong_in_both_classes() -> None:
    assert balanced_accuracy(rows([(True, None), (False, 0.1)])) == 0.5
    assert balanced_accuracy(rows([(True, 0.9), (False, None)])) == 0.5


def test_exactly_one_half_is_not_supported() -> None:
    assert balanced_accuracy(rows([(True, 0.5), (False, 0.5)])) == 0.5
    assert balanced_accuracy(rows([(True, 0.51), (False, 0.5)])) == 1.0


def test_one_class_has_no_score() -> None:
    assert balanced_accuracy(rows([(True, 0.9)])) is None
    assert set_score(rows([(True, 0.9)])) is None


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=2, max_size=60))
def test_auc_is_the_share_of_ordered_pairs(pairs: list[tuple[bool, float]]) -> None:
    found = auc(rows([(label, value) for label, value in pairs]))

    good = [value for label, value in pairs if label]
    bad = [value for label, value in pairs if not label]
    if not good or not bad:
        assert found is None
    else:
        wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
        assert found == pytest.approx(wins / len(good) / len(bad))


def test_intervals_hold_the_value_and_shrink() -> None:
    generator = np.random.default_rng(3)

    def sample(count: int) -> list[Scored]:
        labels = generator.random(count) < 0.5
        right = generator.random(count) < 0.8
        return rows([(bool(label), 0.9 if label == ok else 0.1) for label, ok in zip(labels, right, strict=True)])

    small, large = sample(80), sample(3000)
    low, high = interval(draws(large, seed=1))
    wide_low, wide_high = interval(draws(small, seed=1))

    assert low <= (set_score(large) or 0) <= high
    assert high - low < wide_high - wide_low


def test_gain_is_paired() -> None:
    truth = rows([(bool(i % 2), float(i % 2)) for i in range(400)])
    value, low, high = table.gain({"d": truth}, {"d": truth})

    assert (value, low, high) == (0, 0, 0)


def test_calibration_of_certain_and_right_is_zero() -> None:
    assert ece(rows([(True, 1.0), (False, 0.0)] * 20)) == 0


def test_the_floor_is_containment() -> None:
    assert floor.containment(["A red fox."], "a fox") == 1.0
    assert floor.containment(["A red fox."], "blue fox") == 0.5
    assert floor.containment([], "x") == 0.0
    item = Item(
        id="1",
        dataset="d",
        stratum="s",
        lang="en",
        group="g",
        query="",
        context=("A red fox",),
        response="fox",
        supported=True,
    )

    assert [scored.probability for scored in floor.score([item], 0.7)] == [1.0]


def test_the_table_says_what_it_is() -> None:
    found = report("wice", rows([(True, 0.9), (False, 0.2), (True, None), (False, 0.7)]))
    text = table.markdown([found], {"wice": 0.6}, "x")

    assert "not a release certificate" in text
    assert "25.0%" in text
    assert table.keys([found], {"wice": 0.6})["quality.wice.bacc"] == 50.0
