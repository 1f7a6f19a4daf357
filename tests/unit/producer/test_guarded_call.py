"""The guarded call against a real HTTP server: every action, every failure, sync and async."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import aftercheck
from aftercheck._notices import NOTICES

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server that answers as told, and keeps what it was asked in `server.asked`."""
    servers: list[ThreadingHTTPServer] = []
    release = threading.Event()

    def start(reply: bytes = b"", status: int = 200, *, asked: list[object] | None = None, how: str = "whole") -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if asked is not None:
                    asked.append((self.path, self.headers["Authorization"], json.loads(body)))
                if how == "hang":
                    release.wait(10)
                    return
                self.send_response(status)
                self.send_header("Location", "http://127.0.0.1:1/")
                self.end_headers()
                if how == "drip":
                    while not release.wait(0.05):
                        self.wfile.write(b" ")
                    return
                self.wfile.write(reply)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """A client that gave up is what these tests are about."""

        server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield start
    release.set()
    for server in servers:
        server.shutdown()
        server.server_close()


def reply(action: str) -> bytes:
    return json.dumps({"risk": 0.5, "action": action, "verdicts": []}).encode()


@pytest.mark.req("R33")
@pytest.mark.parametrize(
    ("action", "content"),
    [("allow", "12 euro"), ("warn", f"12 euro\n\n{NOTICES['de'].warn}"), ("block", NOTICES["de"].block)],
)
def test_the_action_decides_what_the_user_sees(serve: Serve, action: str, content: str) -> None:
    asked: list[object] = []
    monitor = aftercheck.Monitor(agent_id="shop", url=serve(reply(action), asked=asked), token="t", language="de-AT")

    @aftercheck.guard(monitor=monitor)
    def agent(question: str) -> aftercheck.Answer:
        return aftercheck.Answer(content="12 euro", context=[f"about {question}"])

    found = agent("price?")
    assert found["content"] == content
    assert found["monitor"]["action"] == action
    assert found["monitor"]["available"] is True
    sent = {"agent_id": "shop", "input": "price?", "output": "12 euro", "context": ["about price?"]}
    assert asked == [("/monitor/check", "Bearer t", {**sent, "tool_logs": [], "memory_refs": []})]


@pytest.mark.req("R33")
def test_an_async_agent_stays_async(serve: Serve) -> None:
    async def agent(question: str) -> dict[str, object]:
        return {"content": f"{question}!", "tool_logs": ["a"]}

    guarded = aftercheck.guard(agent, monitor=aftercheck.Monitor(url=serve(reply("allow"))))
    found = asyncio.run(guarded("hi"))
    assert found["content"] == "hi!"


@pytest.mark.req("R33")
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"how": "hang"}, "timeout"),
        ({"how": "drip"}, "timeout"),
        ({"reply": b"no", "status": 503}, "refused"),
        ({"reply": b"", "status": 302}, "refused"),
        ({"reply": b"{"}, "invalid_reply"),
        ({"reply": b"[]"}, "invalid_reply"),
        ({"reply": b'{"action": "maybe"}'}, "invalid_reply"),
    ],
)
def test_a_monitor_that_fails_passes_with_a_notice_or_blocks(
    serve: Serve, answer: dict[str, object], reason: str
) -> None:
    url = serve(**answer)
    opened = aftercheck.Monitor(url=url, timeout=0.3).check("q", "text")
    assert opened["content"] == f"text\n\n{NOTICES['en'].unavailable}"
    assert opened["monitor"] == {"available": False, "reason": reason, "action": "warn"}
    closed = aftercheck.Monitor(url=url, timeout=0.3, on_unavailable="closed").check("q", "text")
    assert closed["content"] == NOTICES["en"].unavailable_blocked


@pytest.mark.req("R33")
@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "ftp://x", "nonsense", "http://[", "http://127.0.0.1:99999"])
def test_nobody_there_is_no_error_of_the_app(url: str) -> None:
    found = aftercheck.Monitor(url=url, timeout=0.5).check("q", "text \ud800")
    assert found["monitor"]["available"] is False


@pytest.mark.req("R33")
def test_the_agents_own_exception_propagates(serve: Serve) -> None:
    monitor = aftercheck.Monitor(url=serve(reply("allow")))

    @aftercheck.guard(monitor=monitor)
    def agent(question: str) -> str:
        raise KeyError(question)

    with pytest.raises(KeyError, match="boom"):
        agent("boom")
    with pytest.raises(ZeroDivisionError), monitor:
        _ = 1 / 0


@pytest.mark.req("R33")
def test_the_deadline_holds_for_the_whole_reply(serve: Serve) -> None:
    began = time.monotonic()
    aftercheck.Monitor(url=serve(how="drip"), timeout=0.3).check("q", "a")
    # The server drips for ever: an end at all proves the deadline; the wide bound only keeps a broken one short.
    assert time.monotonic() - began < 10
