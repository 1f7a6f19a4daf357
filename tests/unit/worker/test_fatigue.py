"""Fatigue (R30): the slope is right, says nothing without enough sessions, and is not fooled by who leaves when."""

from __future__ import annotations

import random

import pytest

from aftercheck_worker import fatigue
from aftercheck_worker.storage.sessions import SessionAnswer
from benchmarks import fatigue as simulation


def answer(session: int, turn: int, faithfulness: float | None, **fields: object) -> SessionAnswer:
    return SessionAnswer(app="shop", session=str(session), turn=turn, faithfulness=faithfulness, **fields)  # type: ignore[arg-type]


def seeded() -> int:
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201 - to repeat a failure
    return seed


@pytest.mark.req("R30")
@pytest.mark.parametrize("scenario", ["leave_after_bad", "leave_satisfied"])
def test_users_who_leave_are_no_fatigue(scenario: str) -> None:
    """Quality does not depend on the turn. Nominal 5 %: the first turns keep it."""
    leaving, seed, runs = simulation.SCENARIOS[scenario], seeded(), 200

    share = simulation.rate(lambda _: simulation.LEVEL, leaving, whole=False, runs=runs, seed=seed)

    assert share < 0.05 + 5 * simulation.standard_error(0.05, runs), share


@pytest.mark.req("R30")
def test_whole_sessions_would_call_it_fatigue_nearly_always() -> None:
    leaving = simulation.SCENARIOS["leave_after_bad"]
    share = simulation.rate(lambda _: simulation.LEVEL, leaving, whole=True, runs=60, seed=seeded())

    assert share > 0.8, share


@pytest.mark.req("R30")
def test_a_true_decline_is_found() -> None:
    leaving = simulation.Leaving(0.05, 0.05)
    answers = simulation.simulate(random.Random(seeded()), lambda turn: 0.85 - 0.1 * turn, leaving, 1000)

    found = next(
        one for one in fatigue.report(answers).slopes if (one.measure, one.against) == ("faithfulness", "turn")
    )

    assert found.falls
    assert found.slope is not None
    assert found.high is not None
    # the true slope lies within five standard errors, about two half widths of the 99 % interval
    assert abs(found.slope + 0.1) < 2 * (found.high - found.slope)


def test_the_slope_of_a_straight_line_is_its_slope() -> None:
    answers = [
        answer(s, t, 0.9 - 0.05 * t + 0.1 * (s % 2), context_tokens=1000 * t * (1 + s % 3), call_index=1)
        for s in range(60)
        for t in range(1, 6)
    ]
    found = {(one.measure, one.against): one for one in fatigue.report(answers).slopes}
    turn = found["faithfulness", "turn"]

    assert (turn.sessions, turn.answers) == (60, 240)
    assert turn.slope == pytest.approx(-0.05)
    assert turn.high == pytest.approx(-0.05)
    # Held at equal context size the turn still explains everything, and the size nothing.
    assert turn.partial == pytest.approx(-0.05)
    assert found["faithfulness", "context_tokens"].partial == pytest.approx(0.0, abs=1e-9)
    # No call index but 1: nothing can be said, and nothing is.
    assert (found["faithfulness", "call_index"].slope, found["faithfulness", "call_index"].sessions) == (None, 0)
    assert found["citation_precision", "turn"].slope is None


@pytest.mark.req("R30")
def test_below_fifty_sessions_nothing_is_said() -> None:
    def one(sessions: int) -> fatigue.Slope:
        answers = [answer(s, t, 1 - t / 10) for s in range(sessions) for t in range(1, 6)]
        return fatigue.report(answers).slopes[0]

    assert (one(49).sessions, one(49).slope, one(49).falls) == (49, None, False)
    assert (one(50).sessions, one(50).falls) == (50, True)


def test_only_the_first_turns_of_sessions_that_went_on_are_read() -> None:
    answers = [answer(1, t, 1.0) for t in range(1, 5)] + [answer(2, t, 1.0) for t in range(1, 7)]

    chosen = fatigue.first_turns(answers, 4)

    assert [(one.session, one.turn) for one in chosen] == [("2", 1), ("2", 2), ("2", 3), ("2", 4)]


def test_turns_that_were_not_sampled_or_not_measured_leave_holes_and_no_zero() -> None:
    answers = [answer(s, t, None if t == 2 else 0.5 + 0.1 * (t == 3)) for s in range(60) for t in (1, 2, 3, 7)]
    found = fatigue.report(answers)

    assert found.slopes[0].answers == 120
    assert found.slopes[0].slope == pytest.approx(0.05)
    assert [(point.step, round(point.mean, 6)) for point in found.curves[0].points] == [("1", 0.5), ("3", 0.6)]


def test_a_curve_takes_session_differences_out() -> None:
    """Hard sessions carry more context: the pooled mean falls with the size, inside sessions nothing does."""
    answers = [
        answer(s, t, 0.9 if s % 2 else 0.3, context_tokens=(500 if s % 2 else 3000) + 1000 * (t % 2))
        for s in range(60)
        for t in range(1, 6)
    ]
    found = fatigue.report(answers)
    curve = next(one for one in found.curves if one.against == "context_tokens")

    assert [point.step for point in curve.points] == ["00-01k", "01-02k", "02-04k", "04-08k"]
    assert all(point.mean == pytest.approx(0.6) for point in curve.points)


@pytest.mark.parametrize(("degrees", "quantile"), [(20, 2.84534), (49, 2.67995), (200, 2.60063)])
def test_the_quantiles_are_those_of_the_tables(degrees: int, quantile: float) -> None:
    assert fatigue.student(0.99, degrees) == pytest.approx(quantile, abs=1e-4)


def test_apps_are_kept_apart() -> None:
    rows = [answer(s, t, 1 - t / 10) for s in range(60) for t in range(1, 6)]
    other = [SessionAnswer(app="bank", session=one.session, turn=one.turn, faithfulness=0.5) for one in rows]
    slopes = fatigue.report(rows + other).slopes
    turns = {one.app: one.slope for one in slopes if (one.measure, one.against) == ("faithfulness", "turn")}

    assert turns == {"bank": pytest.approx(0.0), "shop": pytest.approx(-0.1)}
