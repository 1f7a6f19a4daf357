"""The pages that read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from redis import RedisError

from aftercheck_worker import feedback as analytics
from aftercheck_worker import funnel
from aftercheck_worker.api.state import state_of
from aftercheck_worker.api.ui import answer, links, view
from aftercheck_worker.api.ui.session import Viewing
from aftercheck_worker.storage import audit, dead_letters, evaluator, explain, incident, thumbs, totals
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
        lines = store.answers(
            connection,
            who.token.tenant,
            end - timedelta(hours=hours),
            end,
            app=view.fit(app),
            outcome=view.fit(outcome),
            bad=bad,
        )
        found = incident.look(connection, lines)
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


@router.get("/ui/disagreements")
def disagreements(request: Request, who: Viewing) -> HTMLResponse:
    """What users say of the evaluator: the queue, the four cells, and what thumbs go with."""
    tenant = who.token.tenant
    with state_of(request).postgres() as connection:
        found = thumbs.disagreements(connection, tenant)
        counts = thumbs.cells(connection, tenant)
        correlated = thumbs.correlations(connection, tenant)
    cells = [analytics.Cells(**msgspec.structs.asdict(one)) for one in counts]
    return view.page(
        "disagreements.html",
        title="Disagreements",
        who=who,
        found=found,
        cells=cells,
        correlations={
            (one.app, one.evaluator_version, one.criterion): (
                one.answers,
                analytics.correlation(one.value, one.answers),
            )
            for one in correlated
        },
        waiting=sum(not one.reviewed for one in found),
    )


@router.get("/ui/health")
def health(request: Request, who: Viewing, app: Word = "") -> HTMLResponse:
    """Show where traces went: what flies, the funnel, and why there may be no verdict (U32)."""
    state, tenant = state_of(request), who.token.tenant
    with state.postgres() as connection:
        waiting = store.unfinished(connection, tenant)
        rows = totals.read(connection, tenant)
    try:
        queued = state.stream.length(tenant)
    except RedisError:
        queued = None
    found = funnel.build(rows, {one.state: one.answers for one in waiting} if not app else {}, app=app or None)
    return view.page(
        "health.html",
        title="Health",
        who=who,
        app=app,
        apps=sorted({row.name.app for row in rows if row.name.app}),
        waiting=waiting,
        queued=queued,
        lines=funnel.lines(found),
        hints=found.hints(waiting=queued or 0),
    )


@router.get("/ui/dlq")
def dlq(request: Request, who: Viewing) -> HTMLResponse:
    """List open dead letters."""
    with state_of(request).postgres() as connection:
        found = dead_letters.find(connection, who.token.tenant, limit=200)
    return view.page("dlq.html", title="Dead letters", who=who, found=found)
