"""What /livez and /readyz answer (I9, U32; cases of evaluators that stand still and "stay healthy").

Ready: every dependency answered at the last refresh, the refresh is recent, and waiting work makes progress.
Live: the refresher runs, and waiting work makes progress. A lost dependency alone does not make the process dead:
restarting it would not bring Postgres back.
"""

from __future__ import annotations

from typing import Final

import msgspec

REFRESH_GRACE: Final = 5.0
"""Seconds that a refresh may be overdue before the answer is not ready."""
WEDGED_SECONDS: Final = 30.0
"""Seconds that a refresh may be overdue before the process is not live."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far the fleet was at one refresh. `mark` changes whenever anything was read, claimed or finished."""

    waiting: int
    mark: tuple[str, ...]


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of one probe. `reasons` is empty when `ok`."""

    ok: bool
    reasons: tuple[str, ...] = ()


class Watch:
    """Follows the refreshes. All times are seconds of one monotonic clock."""

    def __init__(self, *, now: float, refresh_seconds: float, stall_seconds: float) -> None:
        self._refresh_seconds, self._stall_seconds = refresh_seconds, stall_seconds
        self._refreshed = now
        self._moved = now
        self._mark: tuple[str, ...] | None = None
        self._waiting = 0
        self._lost: tuple[str, ...] = ("first refresh not done",)

    def refreshed(self, now: float, progress: Progress | None, lost: tuple[str, ...]) -> None:
        """Record a finished refresh.

        Args:
            now: when it finished.
            progress: None when a dependency did not answer, so that nothing is known.
            lost: one sentence per dependency that did not answer.
        """
        self._refreshed, self._lost = now, lost
        if progress is None:
            self._moved = now  # a stall is measured only while both stores answer
            return
        if progress.mark != self._mark or progress.waiting == 0:
            self._moved = now
        self._mark, self._waiting = progress.mark, progress.waiting

    def live(self, now: float) -> Health:
        """Answer of /livez."""
        reasons = [*self._stall(now), *self._overdue(now, WEDGED_SECONDS)]
        return Health(ok=not reasons, reasons=tuple(reasons))

    def ready(self, now: float) -> Health:
        """Answer of /readyz."""
        reasons = [*self._lost, *self._stall(now), *self._overdue(now, REFRESH_GRACE)]
        return Health(ok=not reasons, reasons=tuple(reasons))

    def _stall(self, now: float) -> list[str]:
        idle = now - self._moved
        if self._waiting and idle > self._stall_seconds:
            return [f"no progress for {idle:.0f} s while {self._waiting} items wait"]
        return []

    def _overdue(self, now: float, grace: float) -> list[str]:
        age = now - self._refreshed
        return [f"no refresh finished for {age:.0f} s"] if age > self._refresh_seconds + grace else []
