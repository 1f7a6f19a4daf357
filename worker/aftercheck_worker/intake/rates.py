"""Sampling rates per app: cached, with the last ten minutes remembered.

A trace is read in chunks, and the rate may change in between. Chunks are let through at the highest rate of the
last ten minutes; the decision is taken once, when the trace is ready, at the rate of that moment. After a raise,
a trace that passes may have left earlier chunks in the cold store (`raised`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from aftercheck_schemas import EntryHeader
from aftercheck_worker.stages.sampling import FULL, Decision, Mode, decide, draw_session, draw_trace, threshold

WINDOW_S: Final = 600.0
ANY_APP: Final = "*"


class Rate(msgspec.Struct, frozen=True):
    """A sampling rate, 0..1, what is drawn, its version (0 = from the settings), and the highest of late.

    `recent` is what Postgres knows of the last ten minutes; it also tells an intake that has just started.
    """

    rate: float
    mode: Mode = "trace"
    version: int = 0
    recent: float = 0.0


ALL: Final = Rate(1.0)


class _Bars(msgspec.Struct, frozen=True):
    """Smallest draws that may pass; `FULL` where the mode was not in force."""

    trace: int
    session: int


class Rates:
    """The rates of a tenant."""

    def __init__(self, default: Rate, *, everything: bool = False) -> None:
        """Create.

        Args:
            default: for apps without a row of their own or of `*`.
            everything: development: rate 1 for all, whatever is stored.
        """
        self._default = default
        self._everything = everything
        self._stored: Mapping[str, Rate] = {}
        self._past: list[tuple[float, Mapping[str, Rate]]] = []
        self._bars: dict[str, _Bars] = {}
        self.loaded = everything

    def replace(self, stored: Mapping[str, Rate], now: float) -> None:
        """Take over what Postgres says at `now` (seconds on any steady clock)."""
        self._past = [(end, rates) for end, rates in self._past if end > now - WINDOW_S]
        if self.loaded and stored != self._stored:
            self._past.append((now, self._stored))
        self._stored = dict(stored)
        self._bars.clear()
        self.loaded = True

    def current(self, app: str) -> Rate:
        """Return the rate in force."""
        return ALL if self._everything else _of(self._stored, app, self._default)

    def passes(self, header: EntryHeader) -> bool:
        """Tell whether a chunk may belong to a sampled trace."""
        if header.origin != "production" or self._everything:
            return True
        bars = self._bars.get(header.app) or self._remember(header.app)
        if draw_trace(header.trace_id) >= bars.trace:
            return True
        if bars.session == FULL:
            return False
        if header.session_id:
            return draw_session(header.session_id) >= bars.session
        if not (header.root and header.local_complete):
            return True  # the session may come with a later chunk
        return draw_trace(header.trace_id) >= bars.session

    def raised(self, app: str) -> bool:
        """Tell whether an earlier chunk of a trace may have been left out although the trace is sampled now."""
        now = self.current(app)
        earlier = (_of(rates, app, self._default) for _, rates in self._past)
        return any(rate.rate < now.rate or rate.mode != now.mode for rate in earlier)

    def decide(self, app: str, trace_id: str, session_id: str, origin: str) -> Decision:
        """Decide for a ready trace. Everything but production traffic is kept with weight 1 (R53, O-13)."""
        rate = self.current(app) if origin == "production" else ALL
        return decide(trace_id, session_id, rate=rate.rate, mode=rate.mode, version=rate.version)

    def _remember(self, app: str) -> _Bars:
        trace = session = FULL
        for rates in (self._stored, *(rates for _, rates in self._past)):
            rate = _of(rates, app, self._default)
            if rate.mode == "session":
                session = min(session, threshold(max(rate.rate, rate.recent)))
            else:
                trace = min(trace, threshold(max(rate.rate, rate.recent)))
        if len(self._bars) > _MAX_APPS:
            self._bars.clear()
        self._bars[app] = bars = _Bars(trace, session)
        return bars


_MAX_APPS: Final = 10_000


def _of(rates: Mapping[str, Rate], app: str, default: Rate) -> Rate:
    return rates.get(app) or rates.get(ANY_APP) or default
