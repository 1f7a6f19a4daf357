"""The sampling rule: deterministic, nested, unbiased, the same for every process."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_worker.stages.sampling import FULL, decide, draw, draw_session, draw_trace, threshold

ids = st.text("0123456789abcdef", min_size=32, max_size=32)
rates = st.floats(0, 1)


@given(trace_id=ids, low=rates, high=rates)
@pytest.mark.req("P9", "R4")
def test_samples_are_nested(trace_id: str, low: float, high: float) -> None:
    low, high = sorted((low, high))

    assert decide(trace_id, "", rate=high).keep or not decide(trace_id, "", rate=low).keep


@given(trace_id=ids)
@pytest.mark.req("R4")
def test_rate_0_keeps_none_and_1_keeps_all(trace_id: str) -> None:
    assert not decide(trace_id, "", rate=0.0).keep
    assert decide(trace_id, "", rate=1.0).keep


@pytest.mark.req("P9")
def test_the_rule_is_opentelemetrys() -> None:
    """Vectors worked out by hand from R >= (1 - p) * 2^56 over the low 56 bits."""
    assert threshold(0.5) == 1 << 55
    assert draw_trace("ffffffffffffffffff" + "80000000000000") == 1 << 55
    assert decide("0" * 18 + "80000000000000", "", rate=0.5).keep
    assert not decide("f" * 18 + "7fffffffffffff", "", rate=0.5).keep


@pytest.mark.req("P9")
def test_the_session_draw_never_changes() -> None:
    """The vector is that of `printf session-1 | b2sum -l 56`."""
    assert draw_session("session-1") == 0x3F2D2B040AEB7F
    assert 0 <= draw_session("\ud800") < FULL


@pytest.mark.req("R30")
def test_session_mode_keeps_whole_sessions() -> None:
    rng = random.Random(3)
    for number in range(50):
        kept = {
            decide(f"{rng.getrandbits(128):032x}", f"s{number}", rate=0.3, mode="session").keep for _ in range(20)
        }
        assert len(kept) == 1


def test_a_trace_without_session_is_drawn_by_its_id() -> None:
    assert draw("f" * 32, "", "session") == draw_trace("f" * 32)


@pytest.mark.req("R4", "R53")
@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_the_share_is_right_and_weights_add_up(rate: float) -> None:
    rng = random.Random(11)
    decisions = [decide(f"{rng.getrandbits(128):032x}", "", rate=rate) for _ in range(20_000)]
    kept = [decision for decision in decisions if decision.keep]

    assert len(kept) / 20_000 == pytest.approx(rate, abs=4 * (rate * (1 - rate) / 20_000) ** 0.5)
    assert {decision.weight for decision in kept} == {1 / rate}


@pytest.mark.parametrize("rate", [-0.1, 1.1, float("nan")])
def test_a_wrong_rate_is_an_error(rate: float) -> None:
    with pytest.raises(ValueError, match="sampling rate"):
        threshold(rate)
