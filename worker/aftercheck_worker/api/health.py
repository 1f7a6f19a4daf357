"""/livez, /readyz and /metrics of the serving process."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest
from redis import RedisError

from aftercheck_worker.api.metering import registry
from aftercheck_worker.api.problem import Problem
from aftercheck_worker.api.state import state_of

router: Final = APIRouter()
REQUESTS: Final = Counter(
    "aftercheck_api_requests_total", "Requests by route and status.", ["route", "status"], registry=registry
)
SECONDS: Final = Histogram(
    "aftercheck_api_request_duration_seconds",
    "Time to answer, by route.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=registry,
)


@router.get("/livez", tags=["health"])
async def livez() -> JSONResponse:
    """Say that the process answers."""
    return JSONResponse({"ok": True})


@router.get("/readyz", tags=["health"], responses={503: {"description": "a service does not answer"}})
def readyz(request: Request) -> JSONResponse:
    """Say whether Postgres and Redis answer."""
    state, reasons = state_of(request), list[str]()
    try:
        with state.postgres() as connection:
            connection.execute("SELECT 1")
    except Problem:
        reasons.append("postgres_unavailable")
    try:
        state.stream.ping()
    except RedisError:
        reasons.append("redis_unavailable")
    return JSONResponse({"ok": not reasons, "reasons": reasons}, 503 if reasons else 200)


@router.get("/metrics", tags=["health"], response_class=Response)
async def metrics() -> Response:
    """Serve this process's own metrics; the fleet's come from the exporter."""
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
