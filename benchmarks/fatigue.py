"""How often the fatigue slope is wrong, by simulation (R30): quality does not depend on the turn, but users leave.

Per scenario the share of runs in which a two-sided 95 % test rejects "no slope": over the first turns of sessions
that went on, as `aftercheck fatigue` reads them, and over whole sessions, as one would read them first. Nominal: .05.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Final

import msgspec

from aftercheck_worker import fatigue
from aftercheck_worker.storage.sessions import SessionAnswer

SESSIONS: Final = 300
LONGEST: Final = 12
RUNS: Final = 400
SEED: Final = 11
LEVEL: Final = 0.75
FALL: Final = 0.04

Value = Callable[[int], float]


class Leaving(msgspec.Struct, frozen=True):
    """Chance that a user leaves after a good answer, and after a bad one."""

    after_good: float
    after_bad: float


SCENARIOS: Final = {
    "leave_after_bad": Leaving(0.05, 0.6),
    "leave_satisfied": Leaving(0.35, 0.05),
    "leave_at_random": Leaving(0.15, 0.15),
}


def simulate(chance: random.Random, good: Value, leaving: Leaving, sessions: int = SESSIONS) -> list[SessionAnswer]:
    """Draw sessions of different difficulty; `good(turn)` is the chance of a faithful answer in a middling one."""
    found: list[SessionAnswer] = []
    for session in range(sessions):
        hard = chance.gauss(0, 0.1)
        for turn in range(1, LONGEST + 1):
            fine = chance.random() < min(1.0, max(0.0, good(turn) + hard))
            found.append(SessionAnswer(app="shop", session=str(session), turn=turn, faithfulness=float(fine)))
            if chance.random() < (leaving.after_good if fine else leaving.after_bad):
                break
    return found


def rejects(answers: list[SessionAnswer], *, whole: bool, confidence: float = 0.95) -> bool:
    """Whether the test finds a slope, in either direction."""
    chosen = answers if whole else fatigue.first_turns(answers, fatigue.FIRST_TURNS)
    by_session: dict[str, list[tuple[float, float]]] = {}
    for one in chosen:
        by_session.setdefault(one.session, []).append((float(one.turn), one.faithfulness or 0.0))
    slope, half = fatigue.slope([pairs for pairs in by_session.values() if len(pairs) > 1], confidence)
    return abs(slope) > half


def rate(good: Value, leaving: Leaving, *, whole: bool, runs: int, seed: int, sessions: int = SESSIONS) -> float:
    """Share of runs that reject."""
    chance = random.Random(seed)
    return sum(rejects(simulate(chance, good, leaving, sessions), whole=whole) for _ in range(runs)) / runs


def standard_error(share: float, runs: int) -> float:
    """Of a simulated share."""
    return math.sqrt(share * (1 - share) / runs)


def run() -> dict[str, float]:
    """Simulate. `power` is the share of runs that find a true fall of .04 a turn among 300 sessions."""
    found: dict[str, float] = {}
    for name, leaving in SCENARIOS.items():
        for part, whole in (("first_turns", False), ("whole_sessions", True)):
            found[f"fatigue.rejects.{name}.{part}"] = rate(
                lambda _: LEVEL, leaving, whole=whole, runs=RUNS, seed=SEED
            )
    at_random = SCENARIOS["leave_at_random"]
    found["fatigue.power"] = rate(lambda turn: 0.95 - FALL * turn, at_random, whole=False, runs=RUNS // 4, seed=SEED)
    return found
