"""The forms that change something: erase a trace, retry or drop a dead letter."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request
from fastapi.responses import RedirectResponse, Response
from redis import RedisError

from aftercheck_worker.api import traces
from aftercheck_worker.api.problem import Problem, unavailable
from aftercheck_worker.api.state import Connection, State, state_of
from aftercheck_worker.api.stream import StreamFull
from aftercheck_worker.api.ui.session import Guarded, Viewer, Viewing, changing
from aftercheck_worker.storage import audit, dead_letters
from aftercheck_worker.storage.dead_letters import DeadLetter

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
    """Give a dead letter back to the path: an answer is pending again, a stream entry is on the stream again."""
    _ = fields
    changing(who)
    state = state_of(request)
    with state.postgres() as connection:
        letter = _open(connection, who, number)
        if letter.evaluation_id is not None:
            if dead_letters.retry_answer(connection, number) is None:
                raise Problem(409, "not_retried", "its answer is no dead letter any more: drop it")
        else:
            _send_again(state, letter, dead_letters.payload(connection, number) or b"")
            dead_letters.resolve(connection, number, "retried")
        audit.note(connection, who.token.id, "dlq.retry", str(number))
    return RedirectResponse("/ui/dlq", 303)


@router.post("/ui/dlq/{number}/drop")
def drop(request: Request, who: Viewing, fields: Guarded, number: Number) -> Response:
    """Close a dead letter and forget its payload."""
    _ = fields
    changing(who)
    with state_of(request).postgres() as connection:
        dead_letters.resolve(connection, _open(connection, who, number).id, "dropped")
        audit.note(connection, who.token.id, "dlq.drop", str(number))
    return RedirectResponse("/ui/dlq", 303)


def _open(connection: Connection, who: Viewer, number: int) -> DeadLetter:
    letter = dead_letters.get(connection, who.token.tenant, number)
    if letter is None or letter.resolved_at is not None:
        raise Problem(409, "closed", "this dead letter is closed or unknown")
    return letter


def _send_again(state: State, letter: DeadLetter, payload: bytes) -> None:
    """Back on the stream before it is closed: a crash in between repeats it, and intake counts it once."""
    if letter.payload_sha256 and not payload:
        raise Problem(409, "no_payload", "its payload was above 1 MiB and was not kept: drop it")
    try:
        state.stream.again(letter.tenant, letter.fields, payload)
    except StreamFull:
        raise unavailable("the stream is full, intake is behind") from None
    except RedisError as error:
        raise unavailable("the queue does not answer") from error
