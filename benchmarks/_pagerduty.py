"""A stand-in for PagerDuty's Events API v2: refuses what PagerDuty refuses, keeps what it takes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self, cast

import msgspec

SEVERITIES: Final = ("critical", "error", "warning", "info")
LIMITS: Final = {"summary": 1024, "source": 1024}
KEY_LENGTH: Final = 32
DEDUP_LIMIT: Final = 255


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One accepted event. `at` is of the monotonic clock."""

    at: float
    action: str
    dedup_key: str
    body: dict[str, Any]


def problems(body: Any) -> list[str]:
    """Say what PagerDuty would refuse (Events API v2, "PD-CEF")."""
    if not isinstance(body, dict):
        return ["the body is no object"]
    event = cast("dict[str, object]", body)
    found: list[str] = []
    if len(str(event.get("routing_key", ""))) != KEY_LENGTH:
        found.append("routing_key must have 32 characters")
    action = event.get("event_action")
    if action not in ("trigger", "acknowledge", "resolve"):
        found.append(f"event_action is {action!r}")
    key = str(event.get("dedup_key", ""))
    if len(key) > DEDUP_LIMIT or (action != "trigger" and not key):
        found.append("dedup_key is missing or too long")
    if action == "trigger":
        payload = cast("dict[str, object]", event.get("payload") or {})
        found += [
            f"payload.{name} is missing or longer than {limit}"
            for name, limit in LIMITS.items()
            if not 0 < len(str(payload.get(name, ""))) <= limit
        ]
        if payload.get("severity") not in SEVERITIES:
            found.append(f"payload.severity is {payload.get('severity')!r}, not one of {', '.join(SEVERITIES)}")
        links = cast("list[dict[str, object]]", event.get("links") or [])
        found += [f"link {link!r} has no href" for link in links if not str(link.get("href", "")).startswith("http")]
    return found


class PagerDuty:
    """Serves `/v2/enqueue` on loopback while it is entered."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.refused: list[str] = []
        self.arrived = threading.Condition()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = owner.take(self.path, body)
                encoded = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(encoded)))
                self.end_headers()
                self.wfile.write(encoded)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v2/enqueue"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, path: str, body: Any) -> tuple[int, dict[str, object]]:
        """Accept or refuse one event."""
        wrong = problems(body) if path == "/v2/enqueue" else [f"no such path {path}"]
        with self.arrived:
            if wrong:
                self.refused += wrong
                answer: dict[str, object] = {"status": "invalid event", "errors": wrong}
            else:
                key = str(body["dedup_key"])
                self.events.append(Event(at=time.monotonic(), action=body["event_action"], dedup_key=key, body=body))
                answer = {"status": "success", "dedup_key": key}
            self.arrived.notify_all()
        return (400 if wrong else 202), answer

    def wait(self, action: str, timeout: float, *, which: Callable[[Event], bool] = lambda _: True) -> Event:
        """Return the first event of this kind that `which` accepts.

        Raises:
            TimeoutError: none came.
        """
        deadline = time.monotonic() + timeout
        with self.arrived:
            while True:
                for event in self.events:
                    if event.action == action and which(event):
                        return event
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"no {action} within {timeout:.0f} s; refused: {self.refused}")
                self.arrived.wait(min(left, 1.0))
