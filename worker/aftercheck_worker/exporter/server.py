"""HTTP front of the exporter: answers from memory, touches neither Postgres nor Redis."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, Final

import msgspec
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.exporter.health import Health

CLIENT_SECONDS: Final = 5
"""A client that sends or reads slower than this is dropped."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A rendered scrape, plain and compressed."""

    plain: bytes
    packed: bytes

    @classmethod
    def of(cls, text: bytes) -> Page:
        """Compress `text` once, at refresh."""
        return cls(plain=text, packed=gzip.compress(text, compresslevel=1))


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """Where the handler gets its answers; each call returns at once."""

    metrics: Callable[[], Page]
    live: Callable[[], Health]
    ready: Callable[[], Health]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    """Routes of one exporter; `bind` makes a subclass that knows where the answers come from."""

    answers: ClassVar[Answers]

    timeout = CLIENT_SECONDS
    server_version = "aftercheck"
    sys_version = ""

    def do_GET(self) -> None:
        """Serve /metrics, /livez and /readyz."""
        path = self.path.split("?", 1)[0]
        if path == "/metrics":
            self._metrics(self.answers.metrics())
        elif path in ("/livez", "/readyz"):
            self._health(self.answers.live() if path == "/livez" else self.answers.ready())
        else:
            self._send(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"/metrics /livez /readyz\n")

    def do_HEAD(self) -> None:
        """Serve the headers alone."""
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a scrape every few seconds is no news."""

    def _metrics(self, page: Page) -> None:
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            self._send(HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, page.packed, encoding="gzip")
        else:
            self._send(HTTPStatus.OK, CONTENT_TYPE_PLAIN_0_0_4, page.plain)

    def _health(self, health: Health) -> None:
        body = json.dumps({"ok": health.ok, "reasons": list(health.reasons)}).encode() + b"\n"
        status = HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE
        self._send(status, "application/json", body)

    def _send(self, status: HTTPStatus, kind: str, body: bytes, *, encoding: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if encoding:
            self.send_header("Content-Encoding", encoding)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def bind(host: str, port: int, answers: Answers) -> ThreadingHTTPServer:
    """Return a bound server; the caller runs `serve_forever` and `shutdown`.

    Raises:
        ConfigurationError: the address cannot be bound.
    """
    try:
        return _Server((host, port), type("Handler", (_Handler,), {"answers": answers}))
    except (OSError, socket.gaierror, OverflowError) as error:
        raise ConfigurationError(
            f"The exporter cannot listen on {host}:{port}",
            why=str(error),
            fix="set AFTERCHECK_EXPORTER_PORT to a free port (0 = any), or stop what listens there",
        ) from None
