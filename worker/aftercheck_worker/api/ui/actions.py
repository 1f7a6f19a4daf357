"""The forms that change something: erase a trace, retry a dead letter."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response

from aftercheck_worker.api import traces
from aftercheck_worker.api.problem import Problem
from aftercheck_worker.api.state import state_of
from aftercheck_worker.api.ui.session import Guarded, Viewing, changing
from aftercheck_worker.storage import dead_letters

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
    changing(who)
    with state_of(request).postgres() as connection:
        own = any(one.id == number for one in dead_letters.find(connection, who.token.tenant, limit=100_000))
        done = dead_letters.retry_answer(connection, number) if own else None
    if done is None:
        raise Problem(409, "not_retried", "it is closed, unknown, or a stream entry: use `aftercheck dlq retry`")
    return RedirectResponse("/ui/dlq", 303)
