"""The embedded Valkey: append-only file, no eviction, random password, loopback only."""

from __future__ import annotations

import signal
import socket
import subprocess

from aftercheck_worker.embedded.identity import Identity
from aftercheck_worker.embedded.server import LOOPBACK, Server, end_stale, log_file, password, port_for

MAX_MEMORY_BYTES = 2 * 2**30
"""Above the caps of stream and cold store together, so that our own admission refuses long before Valkey does."""


class Valkey:
    """One server with its data below `identity.root / "valkey"`."""

    name = "valkey"

    def __init__(self, identity: Identity, *, port: int = 0) -> None:
        self._identity = identity
        self._folder = identity.folder("valkey")
        self._log = self._folder / "valkey.log"
        self._password = password(identity, self._folder)
        self._wanted = port
        self._port = 0
        self._server: Server | None = None
        self.url = ""

    def launch(self) -> None:
        """Start the server; `wait` says when it can be used. Ends one that a killed owner left.

        Raises:
            ConfigurationError: the port is taken.
        """
        end_stale(self._folder / "valkey.pid", "valkey-server", signal.SIGTERM)
        self._port = port_for(self._wanted, "Valkey")
        self.url = f"redis://:{self._password}@{LOOPBACK}:{self._port}/0"
        with log_file(self._log) as log:
            # The configuration goes in by stdin: the password shows neither in `ps` nor in a file.
            process = self._identity.popen([str(self._identity.binaries.valkey), "-"], stdin=subprocess.PIPE, log=log)
        self._server = Server("Valkey", process, signal.SIGTERM, self._log)
        if process.stdin is not None:
            process.stdin.write("\n".join(self._settings()).encode())
            process.stdin.close()

    def wait(self) -> None:
        """Return when the append-only file is loaded and commands are answered.

        Raises:
            DependencyUnavailable: the server does not come up.
        """
        if self._server is None:
            raise RuntimeError("launch() comes first")
        self._server.wait_until(self._ready)

    def stop(self) -> None:
        """End the server; the data stays."""
        if self._server is not None:
            self._server.stop()

    @property
    def pid(self) -> int:
        """Process id of the running server, 0 when there is none."""
        return self._server.process.pid if self._server is not None else 0

    def _settings(self) -> list[str]:
        return [
            f"bind {LOOPBACK}",
            f"port {self._port}",
            f"requirepass {self._password}",
            f'dir "{self._folder}"',
            f'pidfile "{self._folder / "valkey.pid"}"',
            "daemonize no",
            'save ""',
            "appendonly yes",
            "appendfsync everysec",
            "maxmemory-policy noeviction",
            f"maxmemory {MAX_MEMORY_BYTES}",
            "",
        ]

    def _ready(self) -> bool:
        try:
            with socket.create_connection((LOOPBACK, self._port), timeout=0.5) as client:
                client.sendall(f"AUTH {self._password}\r\nPING\r\n".encode())
                answer = b""
                while answer.count(b"\r\n") < 2 and (more := client.recv(256)):
                    answer += more
        except OSError:
            return False
        return answer == b"+OK\r\n+PONG\r\n"
