"""A circuit breaker per endpoint: after repeated failures nobody waits for it until a probe says it is back (F19)."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

IN_A_ROW: Final = 5
WINDOW: Final = 20
SHARE: Final = 0.5
PAUSE_SECONDS: Final = 15.0

State = Literal["closed", "open", "half_open"]


class Breaker:
    """Opens after 5 failures in a row, or when half of the last 20 calls failed; then one probe at a time.

    A failure is an endpoint that does not answer; a 4xx or a reply that nobody can read is none. Used by one event
    loop only.

    Args:
        pause: seconds from opening to the probe.
        clock: monotonic seconds.
    """

    def __init__(self, *, pause: float = PAUSE_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause, self._clock = pause, clock
        self._recent: deque[bool] = deque(maxlen=WINDOW)
        self._row = 0
        self._until: float | None = None
        self._probing = False

    @property
    def state(self) -> State:
        """`half_open` once the pause is over."""
        if self._until is None:
            return "closed"
        return "open" if self._clock() < self._until else "half_open"

    def allows(self) -> bool:
        """May a call start? In the half-open state only one may, until it is recorded."""
        if self.state == "closed":
            return True
        if self.state == "open" or self._probing:
            return False
        self._probing = True
        return True

    def record(self, *, answered: bool) -> None:
        """Note how a call that was allowed ended."""
        self._probing = False
        if answered and self._until is not None:
            self._until = None
            self._recent.clear()
        self._row = 0 if answered else self._row + 1
        self._recent.append(answered)
        full = len(self._recent) == WINDOW
        if self._row >= IN_A_ROW or (full and self._recent.count(False) >= SHARE * WINDOW):
            self._until = self._clock() + self._pause

    def release(self) -> None:
        """Note that an allowed call ended without saying anything about the endpoint."""
        self._probing = False
