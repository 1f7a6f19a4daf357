"""The pages that read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final
from urllib.parse import urlencode

import msgspec
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from aftercheck_worker import feedback as analytics
from aftercheck_worker.api.state import state_of
from aftercheck_worker.api.ui import answer, links, view
from aftercheck_worker.api.ui.session import Viewing
from aftercheck_worker.storage import audit, dead_letters, evaluator, explain
from aftercheck_worker.storage import pages as store

router: Final = APIRouter()
TraceId = Annotated[str, Path(pattern="^[0-9a-fA-F]{32}$")]
Word = Annotated[str, Query(max_length=200)]


@router.get("/")
@router.get("/ui")
@router.get("/ui/")
def start() -> Response:
    """Go to the list."""
    return RedirectResponse("/ui/traces", 303)


@router.get("/traces")
def alert(request: Request, app: Word = "") -> Response:
    """Where the shipped alerts point: `flagged=true` leads to the incident, anything else to the list."""
    query = dict(request.query_params)
    kept = {name: query[name][:200] for name in ("alert", "app", "window", "start", "end") if query.get(name)}
    if query.get("flagged") == "true":
        return RedirectResponse(f"/ui/incidents?{urlencode(kept)}", 303)
    return RedirectResponse(f"/ui/traces?{urlencode({'app': app})}", 303)


@router.get("/ui/traces")
def traces(
    request: Request,
    who: Viewing,
    app: Word = "",
    outcome: Word = "",
    bad: bool = False,
    hours: Annotated[int, Query(ge=1, le=8760)] = 24,
    trace: Word = "",
) -> Response:
    """List answers, newest first; `trace` jumps to one."""
    wanted = trace.strip().lower().replace("-", "")
    if len(wanted) == 32 and all(c in "0123456789abcdef" for c in wanted):
        return RedirectResponse(f"/ui/traces/{wanted}", 303)
    end = datetime.now(UTC) + timedelta(seconds=5)
    with state_of(request).postgres() as connection:
        found = store.answers(
            connection,
            who.token.tenant,
            end - timedelta(hours=hours),
            end,
            app=_fit(app),
            outcome=_fit(outcome),
            bad=bad,
        )
    return view.page(
        "traces.html", title="Answers", who=who, found=found, app=app, outcome=outcome, bad=bad, hours=hours,
        filtered=bool(app or outcome or bad), odd=trace,
    )  # fmt: skip


@router.get("/ui/traces/{trace_id}")
def trace(
    request: Request, who: Viewing, trace_id: TraceId, claim: Word = "", span: Word = "", full: bool = False
) -> HTMLResponse:
    """Show one trace; `claim` opens its evidence, `full` shows a long text whole."""
    wanted = trace_id.lower()
    state = state_of(request)
    with state.postgres() as connection:
        story = explain.explain(connection, who.token.tenant, wanted)
        versions = {one.evaluations[0].evaluator_version for one in story.answers if one.evaluations}
        specs = {version: evaluator.spec(connection, version) for version in versions}
        if story.answers:
            audit.note(connection, who.token.id, "trace.read", wanted)
    answers = [
        answer.read(
            one,
            claim=claim if span in ("", one.span_id) else "",
            full=full,
            spec=specs.get(one.evaluations[0].evaluator_version, {}) if one.evaluations else {},
        )
        for one in story.answers
    ]
    known = bool(story.answers or story.dead_letters or story.feedback or story.erased_at)
    first = story.answers[0] if story.answers else None
    return view.page(
        "trace.html",
        status=200 if known else 404,
        title=f"Trace {wanted[:8]}",
        who=who,
        story=story,
        answers=answers,
        links=links.links(
            state.settings.api_trace_link,
            trace_id=wanted,
            span_id=first.span_id if first else "",
            app=first.app if first else "",
        ),
    )


@router.get("/ui/incidents")
def incident(
    request: Request,
    who: Viewing,
    alert: Word = "",
    app: Word = "",
    service: Word = "",
    start: Word = "",
    end: Word = "",
    window: Word = "30m",
) -> HTMLResponse:
    """Compare an alert's window with the one before.

    `start` and `end`: ISO 8601 or epoch seconds; without `start` the `window` (`30m`, `2h`, `1d`) before `end`.
    """
    until = _moment(end) or datetime.now(UTC)
    since = _moment(start) or until - _window(window)
    if not since < until:
        since = until - _window(window)
    since = max(since, until - timedelta(days=14))
    name = _fit(app or service)
    with state_of(request).postgres() as connection:
        changes = store.changes(connection, who.token.tenant, since, until, app=name)
        bad = store.answers(connection, who.token.tenant, since, until, app=name, bad=True, limit=50)
    return view.page(
        "incident.html", title="Incident", who=who, alert=alert, app=app or service, start=since, end=until,
        before=since - (until - since), changes=changes,
        compared=any(one.judged_before for one in changes), bad=bad,
    )  # fmt: skip


@router.get("/ui/disagreements")
def disagreements(request: Request, who: Viewing) -> HTMLResponse:
    """List answers of which user and evaluator say opposite things."""
    with state_of(request).postgres() as connection:
        found = store.disagreements(connection, who.token.tenant)
        counts = store.cells(connection, who.token.tenant)
    cells = [analytics.Cells(**msgspec.structs.asdict(one)) for one in counts]
    return view.page("disagreements.html", title="Disagreements", who=who, found=found, cells=cells)


@router.get("/ui/health")
def health(request: Request, who: Viewing) -> HTMLResponse:
    """Show the funnel."""
    with state_of(request).postgres() as connection:
        funnel = store.funnel(connection, who.token.tenant)
        waiting = store.unfinished(connection, who.token.tenant)
    return view.page("health.html", title="Health", who=who, funnel=funnel, waiting=waiting)


@router.get("/ui/dlq")
def dlq(request: Request, who: Viewing) -> HTMLResponse:
    """List open dead letters."""
    with state_of(request).postgres() as connection:
        found = dead_letters.find(connection, who.token.tenant, limit=200)
    return view.page("dlq.html", title="Dead letters", who=who, found=found)


def _fit(word: str) -> str:
    return word.replace("\x00", "").encode("utf-8", "replace").decode()


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


_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400}


def _window(word: str) -> timedelta:
    count, unit = word[:-1], word[-1:]
    if unit in _UNITS and count.isascii() and count.isdecimal() and int(count[:6]) > 0:
        return min(timedelta(seconds=int(count[:6]) * _UNITS[unit]), timedelta(days=14))
    return timedelta(minutes=30)
