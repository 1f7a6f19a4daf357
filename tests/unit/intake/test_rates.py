"""Cached rates: what passes undecoded, and what is decided when the trace is ready."""

from __future__ import annotations

import pytest

from aftercheck_schemas import EntryHeader
from aftercheck_worker.intake.rates import WINDOW_S, Rate, Rates
from aftercheck_worker.stages.sampling import draw_session, threshold


def trace(draw: float) -> str:
    return f"{'a' * 18}{int(draw * (1 << 56)):014x}"


def header(
    draw: float, app: str = "a", session: str = "", *, origin: str = "production", whole: bool = True
) -> EntryHeader:
    return EntryHeader(
        app=app,
        trace_id=trace(draw),
        session_id=session,
        origin="replay" if origin == "replay" else "production",
        root=whole,
        local_complete=whole,
    )


def loaded(stored: dict[str, Rate] | None = None, default: float = 0.05) -> Rates:
    rates = Rates(Rate(default))
    rates.replace(stored or {}, 0.0)
    return rates


@pytest.mark.req("R4")
def test_own_row_then_star_then_settings() -> None:
    rates = loaded({"a": Rate(0.5, version=2), "*": Rate(0.2, version=1)})

    assert rates.current("a").rate == 0.5
    assert rates.current("b").rate == 0.2
    assert loaded().current("b") == Rate(0.05)


@pytest.mark.req("P9")
def test_chunks_pass_at_the_highest_rate_of_the_last_ten_minutes() -> None:
    rates = loaded({"a": Rate(0.5)})
    rates.replace({"a": Rate(0.1)}, 100.0)

    assert rates.passes(header(0.6))
    assert not rates.decide("a", trace(0.6), "", "production").keep
    rates.replace({"a": Rate(0.1)}, 101.0 + WINDOW_S)
    assert not rates.passes(header(0.6))


@pytest.mark.req("P9")
def test_postgres_tells_a_new_intake_of_an_older_rate() -> None:
    assert loaded({"a": Rate(0.1, recent=0.5)}).passes(header(0.6))


def test_a_raise_is_remembered_for_ten_minutes() -> None:
    rates = loaded({"a": Rate(0.1)})
    assert not rates.raised("a")
    rates.replace({"a": Rate(0.5)}, 100.0)
    assert rates.raised("a")
    assert not rates.raised("b")
    rates.replace({"a": Rate(0.5)}, 101.0 + WINDOW_S)
    assert not rates.raised("a")


@pytest.mark.req("R53")
def test_replay_is_never_sampled_away() -> None:
    rates = loaded(default=0.0)

    assert rates.passes(header(0.0, origin="replay"))
    decision = rates.decide("a", trace(0.0), "", "replay")
    assert (decision.keep, decision.weight) == (True, 1.0)


@pytest.mark.req("R30")
def test_in_session_mode_an_unfinished_trace_waits_for_its_session() -> None:
    rates = loaded({"a": Rate(0.5, "session")})
    kept = next(f"s{n}" for n in range(100) if draw_session(f"s{n}") >= threshold(0.5))
    left = next(f"s{n}" for n in range(100) if draw_session(f"s{n}") < threshold(0.5))

    assert rates.passes(header(0.0, session=kept))
    assert not rates.passes(header(0.99, session=left))
    assert rates.passes(header(0.0, whole=False))
    assert not rates.passes(header(0.0))


@pytest.mark.req("R4")
def test_development_keeps_everything() -> None:
    rates = Rates(Rate(0.0), everything=True)

    assert rates.loaded
    assert rates.passes(header(0.0))
    assert rates.decide("a", trace(0.0), "", "production").weight == 1.0
