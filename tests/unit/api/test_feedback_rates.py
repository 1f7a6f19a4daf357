"""Wilson intervals of the four cells."""

from __future__ import annotations

import pytest

from aftercheck_worker.feedback import Cells, correlation, rate


@pytest.mark.req("R6")
def test_rates_have_wilson_intervals() -> None:
    # 8 of 10: 0.4902 .. 0.9433 (Newcombe 1998, method 3)
    found = rate(8, 10)
    assert found.value == 0.8
    assert found.low == pytest.approx(0.4902, abs=1e-4)
    assert found.high == pytest.approx(0.9433, abs=1e-4)
    assert (rate(0, 5).low, rate(5, 5).high) == (0.0, 1.0)
    assert rate(0, 0).value is None


@pytest.mark.req("R6")
def test_cells_tell_agreement_from_gap() -> None:
    cells = Cells(app="a", evaluator_version="v", grounded_up=6, grounded_down=2, ungrounded_up=1, ungrounded_down=1)
    assert cells.agreement.value == 0.7
    assert cells.gap.value == 0.25


@pytest.mark.req("R6")
def test_correlations_have_fishers_interval_and_need_ten_answers() -> None:
    # r = 0.5 of 28 pairs: tanh(0.5493 -+ 1.96 / 5)
    found = correlation(0.5, 28)
    assert found.value == 0.5
    assert found.low == pytest.approx(0.1560, abs=1e-4)
    assert found.high == pytest.approx(0.7358, abs=1e-4)
    assert correlation(1.0, 12).high == pytest.approx(1)
    assert correlation(0.9, 9).value is None
    assert correlation(None, 99).value is None
