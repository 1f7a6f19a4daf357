"""The page at 3 a.m.: server-rendered, works without JavaScript, mounted at /ui (trust.md 3.4)."""

from __future__ import annotations

from importlib import resources

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from aftercheck_worker.api.ui import actions, incidents, pages, review, runbooks, session


def mount(app: FastAPI) -> None:
    """Add the pages to `app`."""
    session.install(app)
    for router in (session.router, pages.router, incidents.router, actions.router, review.router, runbooks.router):
        app.include_router(router, include_in_schema=False)
    static = resources.files(__name__) / "static"
    app.mount("/ui/static", StaticFiles(directory=str(static)), name="static")
