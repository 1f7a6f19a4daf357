"""POST /v1/feedback: a user's thumb, from an app or a browser (R6). It goes through the stream, as the SDK's does.

Intake stores it and forces the check of a trace that was not sampled. An id never seen and one that was erased get
the same 202, so that nobody can ask here which traces exist.
"""

from __future__ import annotations

import time
import zlib
from typing import Annotated, Final, Literal

import msgspec
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from redis import RedisError

from aftercheck_schemas import EntryHeader
from aftercheck_worker.api import redacting
from aftercheck_worker.api.access import Feeds
from aftercheck_worker.api.problem import unavailable
from aftercheck_worker.api.state import state_of
from aftercheck_worker.api.stream import StreamFull
from aftercheck_worker.storage import erasure, scrub

router: Final = APIRouter()
Number = Annotated[float, Field(allow_inf_nan=False, gt=-1e9, lt=1e9)]


class FeedbackRequest(BaseModel):
    """One user's word on an answer. The same user's later word on the same answer replaces the earlier one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trace_id: str = Field(pattern="^[0-9a-fA-F]{32}$")
    span_id: str = Field("", pattern="^([0-9a-fA-F]{16})?$")
    value: Literal["up", "down"] | Number
    comment: str | None = Field(None, max_length=4000)
    user_hash: str = Field("", max_length=64, pattern="^[0-9a-zA-Z_-]*$", description="A hash, never a name.")
    app: str = Field("unknown", min_length=1, max_length=200)
    at: int = Field(0, ge=0, lt=2**63, description="Nanoseconds since the epoch; 0 = now.")


class FeedbackReply(BaseModel):
    """It is kept; whether the trace is known is not said."""

    accepted: Literal[True] = True


@router.post("/v1/feedback", status_code=202, tags=["feedback"])
def feedback(request: Request, body: FeedbackRequest, token: Feeds) -> FeedbackReply:
    """Take a thumb or a score. Idempotent; may come before its trace."""
    state = state_of(request)
    trace_id = body.trace_id.lower()
    with state.postgres() as connection:
        if erasure.erased(connection, token.tenant, [trace_id]):
            return FeedbackReply()
    app = scrub.text(body.app)
    clean = redacting.slimmer(state.settings, app, trace_id, 4_000)
    document = msgspec.json.encode(
        {
            "trace_id": trace_id,
            "value": body.value,
            "span_id": body.span_id.lower(),
            "user_hash": body.user_hash,
            "comment": None if body.comment is None else clean.text(body.comment),
            "at": body.at or time.time_ns(),
        }
    )
    header = EntryHeader(kind="feedback", app=app, trace_id=trace_id, source="otlp", size=len(document))
    try:
        state.stream.put(token.tenant, [(header, zlib.compress(document, 1))])
    except StreamFull:
        raise unavailable("the stream is full") from None
    except RedisError as error:
        raise unavailable("the stream does not answer") from error
    return FeedbackReply()
