"""Puts the application together."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from starlette.middleware.cors import CORSMiddleware

from aftercheck_worker.api import check, feedback, health, limits, problem, receiver, traces, ui
from aftercheck_worker.api.state import State

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def create(state: State) -> FastAPI:
    """Return the application around `state`; it opens the state at start and closes it at the end."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        _ = app
        state.open()
        try:
            yield
        finally:
            await state.leave()
            state.close()

    app = FastAPI(title="aftercheck", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.aftercheck = state
    problem.install(app)
    for router in (check.router, feedback.router, traces.router, receiver.router, health.router):
        app.include_router(router)
    ui.mount(app)
    origins = frozenset(word.strip() for word in state.settings.api_browser_origins.split(",") if word.strip())
    app.add_middleware(limits.Gate, loopback_only=state.tokens.empty, feedback_origins=origins)
    if origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=sorted(origins), allow_methods=["POST"], allow_headers=["authorization"]
        )
    app.middleware("http")(_counted)
    return app


async def _counted(request: Request, go: Callable[[Request], Awaitable[Response]]) -> Response:
    began = time.perf_counter()
    response = await go(request)
    route = request.scope.get("route")
    name = getattr(route, "path", "other") if route is not None else "other"
    health.REQUESTS.labels(name, str(response.status_code)).inc()
    health.SECONDS.labels(name).observe(time.perf_counter() - began)
    for header, value in HEADERS.items():
        response.headers.setdefault(header, value)
    return response
