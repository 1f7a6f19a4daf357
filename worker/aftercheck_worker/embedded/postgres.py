"""The embedded Postgres: initdb once, then a server on loopback with a random password and no Unix socket."""

from __future__ import annotations

import shutil
import signal
import subprocess

import psycopg
from psycopg import sql

from aftercheck_worker.embedded.identity import Identity
from aftercheck_worker.embedded.server import LOOPBACK, Server, end_stale, last_line, log_file, password, port_for
from aftercheck_worker.errors import ConfigurationError, DependencyUnavailable

USER = DATABASE = "aftercheck"
_READY = "ready"
_STATUS_LINE = 7


class Postgres:
    """One cluster below `identity.root / "postgres"`; its data stays between runs."""

    name = "postgres"

    def __init__(self, identity: Identity, *, port: int = 0, durable: bool = True) -> None:
        self._identity = identity
        self._folder = identity.folder("postgres")
        self._data = self._folder / "data"
        self._log = self._folder / "postgres.log"
        self._password = password(identity, self._folder)
        self._wanted, self._durable = port, durable
        self._server: Server | None = None
        self.url = ""

    def launch(self) -> None:
        """Start the server; `wait` says when it can be used. Ends one that a killed owner left.

        Raises:
            ConfigurationError: the data is of another Postgres version, or the port is taken.
            DependencyUnavailable: initdb failed.
        """
        end_stale(self._data / "postmaster.pid", "postgres", signal.SIGINT)
        self._init()
        port = port_for(self._wanted, "Postgres")
        self.url = f"postgresql://{USER}:{self._password}@{LOOPBACK}:{port}/{DATABASE}"
        args = [str(self._identity.binaries.postgres), "-D", str(self._data)]
        for setting in self._settings(port):
            args += ["-c", setting]
        with log_file(self._log) as log:
            process = self._identity.popen(args, stdin=subprocess.DEVNULL, log=log)
        # SIGINT is Postgres's fast shutdown; SIGTERM would wait for every open client.
        self._server = Server("Postgres", process, signal.SIGINT, self._log)

    def wait(self) -> None:
        """Return when clients can connect.

        Raises:
            DependencyUnavailable: the server does not come up.
        """
        if self._server is None:
            raise RuntimeError("launch() comes first")
        self._server.wait_until(self._ready)
        self._create_database()

    def stop(self) -> None:
        """End the server; the data stays."""
        if self._server is not None:
            self._server.stop()

    @property
    def pid(self) -> int:
        """Process id of the running server, 0 when there is none."""
        return self._server.process.pid if self._server is not None else 0

    def _settings(self, port: int) -> list[str]:
        return [
            f"port={port}",
            f"listen_addresses={LOOPBACK}",
            # No Unix socket: its path may not be longer than 107 bytes, a home folder's often is.
            "unix_socket_directories=",
            "max_connections=100",
            "log_timezone=UTC",
            "timezone=UTC",
            "jit=off",
            *([] if self._durable else ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]),
        ]

    def _init(self) -> None:
        version = self._data / "PG_VERSION"
        if version.exists():
            self._refuse_other_version(version.read_text(encoding="ascii").strip())
            return
        # initdb writes beside and the result is renamed: an interrupted one is simply made again.
        part = self._folder / "data.new"
        shutil.rmtree(part, ignore_errors=True)
        command = [
            *(str(self._identity.binaries.initdb), "-D", str(part), "-U", USER, "-A", "scram-sha-256"),
            *(f"--pwfile={self._folder / 'password'}", "-E", "UTF8", "--locale=C", "--locale-provider=builtin"),
            *("--builtin-locale=C.UTF-8", "--no-instructions", *(() if self._durable else ("--no-sync",))),
        ]
        with log_file(self._log) as log:
            status = self._identity.popen(command, stdin=subprocess.DEVNULL, log=log).wait(120)
        if status != 0:
            raise DependencyUnavailable(
                "initdb of the embedded Postgres failed", why=last_line(self._log), fix=f"see {self._log}"
            )
        part.rename(self._data)

    def _refuse_other_version(self, found: str) -> None:
        major = _major(self._identity)
        if found != major:
            raise ConfigurationError(
                f"{self._data} cannot be opened",
                why=f"it was written by Postgres {found}, installed is {major}",
                fix="move the folder away, or set AFTERCHECK_HOME to another one",
            )

    def _ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text(encoding="ascii", errors="replace").split("\n")
        except OSError:
            return False
        return len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == _READY

    def _create_database(self) -> None:
        maintenance = self.url.rpartition("/")[0] + "/postgres"
        with psycopg.connect(maintenance, autocommit=True, connect_timeout=10) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone()
            if known is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))


def _major(identity: Identity) -> str:
    told = subprocess.run(  # noqa: S603 - our own binary
        [str(identity.binaries.postgres), "--version"], capture_output=True, text=True, check=False, timeout=20
    ).stdout
    return told.rsplit(" ", 1)[-1].split(".")[0].strip()
