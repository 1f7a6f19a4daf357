"""The simulation of the page in plain numbers; tests/integration/oncall holds it to the real rules."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_worker.oncall import faithfulness, simulation
from aftercheck_worker.oncall.simulation import Counters, Flags

HOLD = int(faithfulness.HOLD_SECONDS / simulation.STEP)
KEEP = int(faithfulness.KEEP_SECONDS / simulation.STEP)


def flags(*parts: tuple[bool, int]) -> Flags:
    """(value, scrapes) after one another."""
    return np.concatenate([np.full(count, value) for value, count in parts])


def steady(per_scrape: float, values: Iterable[float]) -> Counters:
    """The same number of answers at each scrape, all with that scrape's value."""
    each = np.fromiter(values, float)
    return Counters(
        count=np.cumsum(np.full(each.size, per_scrape)),
        sum=np.cumsum(per_scrape * each),
        squares=np.cumsum(per_scrape * each**2),
    )


@given(mean=st.floats(0.3, 0.95), spread=st.floats(0.05, 0.25))
def test_drawn_answers_have_the_mean_and_the_spread(mean: float, spread: float) -> None:
    drawn = simulation.draw(np.random.default_rng(5), mean, min(spread, math.sqrt(mean * (1 - mean))), 20_000)

    assert drawn.min() >= 0
    assert drawn.max() <= 1
    assert drawn.mean() == pytest.approx(mean, abs=0.01)
    assert drawn.std() == pytest.approx(min(spread, math.sqrt(mean * (1 - mean))), abs=0.01)


def test_the_widest_spread_is_two_points() -> None:
    drawn = simulation.draw(np.random.default_rng(5), 0.9, 0.3, 20_000)

    assert set(drawn.tolist()) == {0.0, 1.0}


def test_answers_of_a_session_share_their_value() -> None:
    made = simulation.traffic(np.random.default_rng(5), 60, 600, 0.85, 0.2, session=4)
    ends = made.count.astype(int)
    whole = np.nonzero(ends % 4 == 0)[0]

    assert made.count[-1] == pytest.approx(600, rel=0.2)
    between = np.diff(made.sum[whole]) / 4
    assert np.isfinite(between).all()
    single = np.diff(ends[whole]) == 4
    assert single.any()
    squares = np.diff(made.squares[whole])[single] / 4
    assert squares == pytest.approx(between[single] ** 2)


def test_a_window_without_enough_scrapes_says_nothing() -> None:
    samples = simulation.SAMPLES["5m"]
    grown = simulation.increase(np.arange(200.0), "5m")

    assert np.isnan(grown[: samples - 1]).all()
    # 59 steps were seen of the 60 that the window is long: PromQL extrapolates
    assert grown[samples - 1 :] == pytest.approx(60.0)


def test_no_answers_are_no_mean_and_no_page() -> None:
    silent = Counters(count=np.zeros(500), sum=np.zeros(500), squares=np.zeros(500))

    assert np.isnan(simulation.window(silent, "5m").mean).all()
    assert not simulation.active(silent).any()


def test_the_bound_widens_with_the_design_effect() -> None:
    chance = np.random.default_rng(5)
    made = steady(5, chance.choice([0.4, 1.0], 400))
    narrow, wide = (simulation.window(made, "5m", effect) for effect in (1.0, 4.0))

    assert (wide.upper - wide.mean)[100:] == pytest.approx(2 * (narrow.upper - narrow.mean)[100:])


def test_a_certain_drop_is_active_and_its_recovery_is_not() -> None:
    alternating = [0.4, 0.6] * 200
    made = steady(5, [*([0.95, 0.85] * 200), *alternating, *([0.95, 0.85] * 400)])
    active = simulation.active(made)

    assert not active[:400].any()
    assert active[460:800].all()
    assert not active[-1]


@pytest.mark.parametrize(
    ("shape", "pages"),
    [
        ([(False, 50), (True, HOLD), (False, 50)], []),
        ([(False, 50), (True, HOLD + 1), (False, 50)], [50 + HOLD]),
        ([(True, 400)], [HOLD]),
        ([(True, HOLD + 1), (False, KEEP - HOLD - 5), (True, 100)], [HOLD]),
        ([(True, HOLD + 1), (False, KEEP + 1), (True, 100)], [HOLD, 2 * HOLD + KEEP + 2]),
        ([(False, 300)], []),
    ],
)
def test_a_page_needs_the_hold_and_flapping_is_one_page(shape: list[tuple[bool, int]], pages: list[int]) -> None:
    assert simulation.fired(flags(*shape)).tolist() == pages


def test_the_same_seed_gives_the_same_pages_and_a_sick_service_gives_many() -> None:
    drawn = simulation.answers(np.random.default_rng(5), 100_000, 0.78, 0.3)
    sick = [simulation.false_pages(seed, 30, drawn, days=2) for seed in (1, 1, 2)]

    assert sick[0] == sick[1]
    assert min(sick) > 0


def test_time_to_fire_is_none_without_a_drop_and_minutes_with_one() -> None:
    assert math.isnan(simulation.time_to_fire(3, 60, after=(0.92, 0.2)))
    assert 30 < simulation.time_to_fire(3, 60) < 300


@pytest.mark.parametrize("per_minute", [0.5, 6.0, 60.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_active_is_the_expression_of_the_page(per_minute: float, seed: int) -> None:
    """The shortcut agrees with the rule written out: low in 5 minutes, or in 30 unless 5 are fine again."""
    chance = np.random.default_rng(seed)
    made = simulation.traffic(chance, per_minute, 6 * 3600, 0.79, 0.35)
    short, long = (simulation.window(made, name, 1.3) for name in ("5m", "30m"))
    enough = faithfulness.MINIMUM * 1.3
    low = [(one.upper < faithfulness.THRESHOLD) & (one.count >= enough) for one in (short, long)]
    fine = (short.mean >= faithfulness.THRESHOLD) & (short.count >= faithfulness.MINIMUM)

    found = simulation.active(made, 1.3)

    assert found.tolist() == (low[0] | (low[1] & ~fine)).tolist()


def test_the_comparison_above_has_both_sides() -> None:
    made = simulation.traffic(np.random.default_rng(1), 60.0, 6 * 3600, 0.79, 0.35)
    found = simulation.active(made, 1.3)

    assert found.any()
    assert not found.all()
