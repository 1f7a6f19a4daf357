"""Where an alert's link leads: the answers to look at, and what changed against the window before."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from aftercheck_worker.api.state import state_of
from aftercheck_worker.api.ui import runbooks, view
from aftercheck_worker.api.ui.changes import compare
from aftercheck_worker.api.ui.session import Viewing
from aftercheck_worker.storage import incident as store
from aftercheck_worker.storage import pages

router: Final = APIRouter()
Word = Annotated[str, Query(max_length=200)]
LONGEST: Final = timedelta(days=14)
SHOWN: Final = 20
USUAL: Final = timedelta(minutes=30)
_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400}


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """[start, end), UTC; never empty, 14 days at most."""

    start: datetime
    end: datetime

    @property
    def before(self) -> datetime:
        """Start of the window of the same length before it."""
        return self.start - (self.end - self.start)


@router.get("/traces")
def alert(request: Request, app: Word = "") -> Response:
    """Where the shipped alerts point: `flagged=true` leads to the incident, anything else to the list."""
    query = dict(request.query_params)
    names = ("alert", "app", "window", "at", "start", "end")
    kept = {name: query[name][:200] for name in names if query.get(name)}
    if query.get("flagged") == "true":
        return RedirectResponse(f"/ui/incidents?{urlencode(kept)}", 303)
    return RedirectResponse(f"/ui/traces?{urlencode({'app': app})}", 303)


@router.get("/ui/incidents")
def incident(
    request: Request,
    who: Viewing,
    alert: Word = "",
    app: Word = "",
    service: Word = "",
    start: Word = "",
    end: Word = "",
    at: Word = "",
    window: Word = "30m",
) -> HTMLResponse:
    """Compare an alert's window with the one before, see `window_of`."""
    name = view.fit(app or service)
    found = window_of(start=start, end=end, at=at, window=window, now=datetime.now(UTC))
    tenant = who.token.tenant
    with state_of(request).postgres() as connection:
        compared = compare(store.changes(connection, tenant, found.start, found.end, app=name))
        bad = pages.worst(connection, tenant, found.start, found.end, app=name, limit=SHOWN + 1)
        looks = store.look(connection, bad[:SHOWN])
    command = f"aftercheck recheck --since {found.start:%Y-%m-%dT%H:%M:%S+00:00}"
    return view.page(
        "incident.html",
        title="Incident",
        who=who,
        alert=alert,
        runbook=runbooks.known(alert),
        app=app or service,
        found=found,
        compared=compared,
        looks=looks,
        more=len(bad) > SHOWN,
        command=f"{command} --app {shlex.quote(name)}" if name else command,
    )


def window_of(*, start: str, end: str, at: str, window: str, now: datetime) -> Window:
    """Read the window of a link. Moments are ISO 8601 or epoch seconds; what cannot be read is as if left out.

    Args:
        start: of the window; without it the window is `window` long.
        end: of the window; without it, now.
        at: when the alert began: from `window` before it to as long after it, so that a link that is opened an hour
            later still shows what the alert saw.
        window: such as `30m`, `2h`, `1d`.
        now: nothing ends later than this plus five seconds.
    """
    length, last = _length(window), now + timedelta(seconds=5)
    began = _moment(at)
    until = _moment(end) or (None if began is None else began + length)
    until = min(until or last, last)
    since = _moment(start) or (began - length if began is not None else until - length)
    if not since < until:
        since = until - length
    return Window(start=max(since, until - LONGEST), end=until)


def _moment(word: str) -> datetime | None:
    try:
        seconds = float(word)
    except ValueError:
        try:
            found = datetime.fromisoformat(word.replace(" ", "+"))
        except ValueError:
            return None
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found if 1990 < found.year < 2200 else None
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < 7_000_000_000 else None


def _length(word: str) -> timedelta:
    count, unit = word[:-1], word[-1:]
    if unit in _UNITS and count.isascii() and count.isdecimal() and int(count[:6]) > 0:
        return min(timedelta(seconds=int(count[:6]) * _UNITS[unit]), LONGEST)
    return USUAL
