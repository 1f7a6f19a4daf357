"""The forms that change something: erase, retry, and the privacy review before a regression case (R46)."""

from __future__ import annotations

import time
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from aftercheck_schemas import Interaction
from aftercheck_schemas.golden import GoldenCase, GoldenPassage
from aftercheck_worker.api import traces
from aftercheck_worker.api.problem import Problem
from aftercheck_worker.api.state import state_of
from aftercheck_worker.api.ui import view
from aftercheck_worker.api.ui.session import Guarded, Viewer, Viewing
from aftercheck_worker.storage import corrections, dead_letters

router: Final = APIRouter()
TraceId = Annotated[str, Path(pattern="^[0-9a-fA-F]{32}$")]
Number = Annotated[int, Path(ge=1, lt=2**63)]


@router.post("/ui/traces/{trace_id}/erase")
def erase(request: Request, who: Viewing, fields: Guarded, trace_id: TraceId) -> Response:
    """Erase a trace after its id was typed."""
    if not who.may_erase:
        raise Problem(403, "scope", "the token has no scope erase")
    if fields.get("confirm", "").strip().lower() != trace_id.lower()[:8]:
        raise Problem(422, "confirm", "type the first 8 digits of the trace id to erase it")
    traces.erase(state_of(request), who.token.tenant, trace_id.lower(), actor=who.token.id)
    return RedirectResponse(f"/ui/traces/{trace_id.lower()}", 303)


@router.post("/ui/dlq/{number}/retry")
def retry(request: Request, who: Viewing, fields: Guarded, number: Number) -> Response:
    """Make the answer of a dead letter pending again; a stream entry is retried by `aftercheck dlq retry`."""
    _ = fields
    _changing(who)
    with state_of(request).postgres() as connection:
        own = any(one.id == number for one in dead_letters.find(connection, who.token.tenant, limit=100_000))
        done = dead_letters.retry_answer(connection, number) if own else None
    if done is None:
        raise Problem(409, "not_retried", "it is closed, unknown, or a stream entry: use `aftercheck dlq retry`")
    return RedirectResponse("/ui/dlq", 303)


@router.get("/ui/review/{evaluation_id}")
def review(request: Request, who: Viewing, evaluation_id: Number) -> HTMLResponse:
    """Show the text that would become a regression case, to be redacted by hand."""
    _changing(who)
    body = _interaction(request, who, evaluation_id)
    return view.page("review.html", title="Privacy review", who=who, body=body, number=evaluation_id)


@router.post("/ui/review/{evaluation_id}")
def reviewed(request: Request, who: Viewing, fields: Guarded, evaluation_id: Number) -> Response:
    """Keep the reviewed text as a regression case."""
    _changing(who)
    if fields.get("private") != "none":
        raise Problem(422, "review", "confirm that no personal data is left in the text")
    body = _interaction(request, who, evaluation_id)
    case = GoldenCase(
        id=f"feedback-{evaluation_id}",
        query=fields.get("query", ""),
        answer=fields.get("answer", ""),
        context=tuple(
            GoldenPassage(source_id=passage.source_id, text=fields.get(f"passage-{place}", ""), kind=passage.kind)
            for place, passage in enumerate(body.passages)
        ),
        expected="ungrounded" if fields.get("expected") == "ungrounded" else "grounded",
        reviewer=who.token.id,
        verified_at=int(time.time()),
        source="feedback",
    )
    with state_of(request).postgres() as connection:
        corrections.keep(connection, evaluation_id, case)
    return RedirectResponse("/ui/disagreements", 303)


@router.get("/ui/regressions.jsonl")
def exported(request: Request, who: Viewing) -> Response:
    """Return the reviewed cases, one per line, in the golden format."""
    with state_of(request).postgres() as connection:
        cases = corrections.cases(connection, who.token.tenant)
    lines = b"".join(msgspec.json.encode(case) + b"\n" for case in cases)
    return Response(lines, media_type="application/x-ndjson")


def _changing(who: Viewer) -> None:
    if not who.may_change:
        raise Problem(403, "scope", "the token has no scope admin")


def _interaction(request: Request, who: Viewer, evaluation_id: int) -> Interaction:
    with state_of(request).postgres() as connection:
        found = corrections.interaction(connection, who.token.tenant, evaluation_id)
    if found is None:
        raise Problem(404, "unknown_answer", "there is no such answer, or its text is gone")
    return found
