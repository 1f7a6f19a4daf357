"""Bodies, rates and origins: what is refused before any handler runs (trust.md S24)."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aftercheck_worker.api.problem import Problem

BODY_BYTES: Final = 1024 * 1024
OTLP_BYTES: Final = 8 * 1024 * 1024
OTLP_PATHS: Final = ("/v1/traces", "/v1/logs")
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1", "[::1]")


def body_cap(method: str, path: str) -> int:
    """Largest body in bytes that a route takes, as sent."""
    return OTLP_BYTES if method == "POST" and path in OTLP_PATHS else BODY_BYTES


class Gate:
    """ASGI middleware: counts the body as it streams in (413), and keeps foreign pages out (403).

    Args:
        app: what comes behind.
        loopback_only: with no token to prove who calls, only a Host header that names this machine is served, so that
            a page elsewhere cannot rebind its name to 127.0.0.1.
        feedback_origins: origins whose pages may POST /v1/feedback.
    """

    def __init__(self, app: ASGIApp, *, loopback_only: bool, feedback_origins: frozenset[str]) -> None:
        self._app = app
        self._loopback_only = loopback_only
        self._feedback_origins = feedback_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self._app(scope, self._counted(scope, receive), send)

    def _refused(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._loopback_only and _name(host) not in LOOPBACK:
            return _answer(403, "host", "without tokens only this machine is served; make a token")
        length = headers.get("content-length", "")
        cap = body_cap(scope["method"], scope["path"])
        if length.isascii() and length.isdigit() and int(length[:15]) > cap:
            return _answer(413, "too_large", f"the body is larger than {cap} bytes")
        origin = headers.get("origin")
        if origin is None or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return None
        if urlsplit(origin).netloc == host and host:
            return None
        if origin == "null" and scope["path"].startswith("/ui/"):
            return None  # our own forms under Referrer-Policy: no-referrer; their CSRF word decides
        if scope["path"] == "/v1/feedback" and origin in self._feedback_origins:
            return None
        return _answer(403, "origin", "pages of this origin may not call this; see AFTERCHECK_API_BROWSER_ORIGINS")

    def _counted(self, scope: Scope, receive: Receive) -> Receive:
        cap, seen = body_cap(scope["method"], scope["path"]), 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > cap:
                    raise Problem(413, "too_large", f"the body is larger than {cap} bytes")
            return message

        return counted


def _name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _answer(status: int, code: str, detail: str) -> JSONResponse:
    return JSONResponse({"error": code, "detail": detail}, status, headers={"Connection": "close"})
