"""The fault proxy itself: a fault that does not happen would make every fault test green."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.faults.proxy import FaultProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.faults


@pytest.fixture
def echo_port() -> Iterator[int]:
    """A server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=_echo, args=(connection,), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


def _echo(connection: socket.socket) -> None:
    with connection:
        try:
            while data := connection.recv(65536):
                connection.sendall(data)
        except OSError:
            return


def _ask(connection: socket.socket, timeout: float = 2.0) -> bytes:
    connection.settimeout(timeout)
    connection.sendall(b"ping")
    return connection.recv(10)


def _refused_or_closed(proxy: FaultProxy) -> bool:
    try:
        with _connect(proxy) as connection:
            return not _ask(connection)
    except ConnectionError:
        return True


def _connect(proxy: FaultProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=2)


def test_every_mode_does_what_it_says_and_heals(echo_port: int) -> None:
    with FaultProxy("127.0.0.1", echo_port, latency_s=0.3) as proxy:
        with _connect(proxy) as open_one:
            assert _ask(open_one) == b"ping"
            proxy.set("blackhole")
            with pytest.raises(TimeoutError):
                _ask(open_one, 0.2)
        with _connect(proxy) as new_one, pytest.raises(TimeoutError):
            _ask(new_one, 0.2)
        proxy.set("latency")
        with _connect(proxy) as late:
            started = time.monotonic()
            assert _ask(late) == b"ping"
            assert time.monotonic() - started >= 0.3
        proxy.set("reset")
        assert _refused_or_closed(proxy)
        proxy.set("down")
        with pytest.raises(ConnectionRefusedError):
            _connect(proxy)
        proxy.set("ok")
        with _connect(proxy) as healed:
            assert _ask(healed) == b"ping"


def test_slow_limits_the_rate(echo_port: int) -> None:
    with FaultProxy("127.0.0.1", echo_port, rate=20) as proxy:
        proxy.set("slow")
        with _connect(proxy) as connection:
            started = time.monotonic()
            assert _ask(connection, 5)
            assert time.monotonic() - started >= 0.1
