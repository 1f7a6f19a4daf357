"""The `serve` process: one uvicorn server until it is told to stop."""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable
from pathlib import Path
from socket import IPPROTO_TCP, TCP_NODELAY

import uvicorn

from aftercheck_worker import evaluators
from aftercheck_worker.api.application import create
from aftercheck_worker.api.checker import Checker
from aftercheck_worker.api.state import State
from aftercheck_worker.api.tokens import TokenBook
from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.settings import Settings


def tokens_path(settings: Settings) -> Path:
    """Where the tokens are."""
    return settings.api_tokens_file or settings.home / "tokens.json"


def state(settings: Settings) -> State:
    """Build the state of a serving process; loads the verifier.

    Raises:
        ConfigurationError: no tokens, and the address is not loopback; or the evaluator cannot run.
    """
    book = TokenBook(tokens_path(settings))
    if book.empty and not _loopback(settings.api_host):
        raise ConfigurationError(
            f"`serve` does not listen on {settings.api_host} without tokens",
            why="anybody who reaches it could read and erase",
            fix="aftercheck token add NAME --scope read, or keep AFTERCHECK_API_HOST=127.0.0.1",
        )
    checker = Checker(
        # One caller waits for one check: here spinning buys latency. Workers share their cores.
        evaluators.resolve(settings.evaluator, settings.model_copy(update={"inference_spin": settings.api_spin})),
        most=settings.api_max_checks,
        seconds=settings.api_check_seconds,
        pairs=settings.batch_pairs,
    )
    return State(settings, checker, book)


def run(settings: Settings, stop: threading.Event, *, ready: Callable[[str], None] | None = None) -> None:
    """Serve until `stop` is set.

    Raises:
        ConfigurationError: as `state`, or the address cannot be bound.
    """
    config = uvicorn.Config(
        create(state(settings)),
        host=settings.api_host,
        port=settings.api_port,
        log_config=None,
        access_log=False,  # a line per request would carry trace ids and addresses
        server_header=False,
        timeout_keep_alive=15,
        limit_concurrency=512,
        h11_max_incomplete_event_size=32 * 1024,
    )
    server = uvicorn.Server(config)
    try:
        socket = config.bind_socket()
    except SystemExit:
        raise ConfigurationError(
            f"`serve` cannot listen on {settings.api_host}:{settings.api_port}",
            why="the port is taken or the address is not ours",
            fix="set AFTERCHECK_API_PORT to a free port (0 = any)",
        ) from None
    # asyncio sets it only on sockets made for TCP by number, and uvicorn's are not. Head and body of a reply are two
    # writes; without it the second waits 40 ms for the caller's delayed acknowledgement. Accepted sockets inherit it.
    socket.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, name="uvicorn", daemon=True)
    thread.start()
    if ready is not None:
        host, port = socket.getsockname()[:2]
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
    while thread.is_alive() and not stop.wait(0.2):
        continue
    server.should_exit = True
    thread.join(timeout=15)
    socket.close()


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
