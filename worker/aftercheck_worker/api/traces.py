"""GET and DELETE /v1/traces/{trace_id} (R5, S35)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Path, Request, Response
from redis import RedisError

from aftercheck_worker.api import erasing
from aftercheck_worker.api.access import Erases, Reads
from aftercheck_worker.api.problem import Problem, unavailable
from aftercheck_worker.api.state import State, state_of
from aftercheck_worker.storage import audit, erasure, explain

router: Final = APIRouter()
TraceId = Annotated[str, Path(pattern="^[0-9a-fA-F]{32}$")]


@router.get("/v1/traces/{trace_id}", tags=["traces"], response_class=Response)
def get(request: Request, trace_id: TraceId, token: Reads) -> Response:
    """Return everything known of a trace: answers, claims, evidence, judgements, feedback, and why none."""
    with state_of(request).postgres() as connection:
        story = explain.explain(connection, token.tenant, trace_id.lower())
        if not (story.answers or story.dead_letters or story.feedback or story.erased_at):
            raise Problem(404, "unknown_trace", story.why)
        audit.note(connection, token.id, "trace.read", trace_id.lower())
    return Response(msgspec.json.encode(story), media_type="application/json")


@router.delete("/v1/traces/{trace_id}", tags=["traces"], response_class=Response)
def delete(request: Request, trace_id: TraceId, token: Erases) -> Response:
    """Erase every copy and return the receipt; `known` says whether there was anything."""
    receipt = erase(state_of(request), token.tenant, trace_id.lower(), actor=token.id)
    return Response(msgspec.json.encode(receipt), media_type="application/json")


def erase(state: State, tenant: str, trace_id: str, *, actor: str) -> erasure.Receipt:
    """Erase in Redis, then Postgres, then Redis again for what an intake held meanwhile.

    Raises:
        Problem: 503 when one of them does not answer; nothing is lost by calling again.
    """
    try:
        gone = erasing.forget(state.stream, tenant, trace_id)
        with state.postgres() as connection:
            receipt = erasure.erase(connection, tenant, trace_id, actor=actor, elsewhere=gone)
        erasing.forget(state.stream, tenant, trace_id)
    except RedisError as error:
        raise unavailable("the stream does not answer") from error
    return receipt
