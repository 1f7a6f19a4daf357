"""One pair of servers per home folder, shared by all commands that use it. Who starts them also stops them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol, Self

import msgspec

from aftercheck_worker.embedded import binaries, identity
from aftercheck_worker.embedded.postgres import Postgres
from aftercheck_worker.embedded.server import START_SECONDS
from aftercheck_worker.embedded.valkey import Valkey
from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.settings import Settings


class _Launcher(Protocol):
    name: str
    url: str

    @property
    def pid(self) -> int: ...
    def launch(self) -> None: ...
    def wait(self) -> None: ...
    def stop(self) -> None: ...


class _State(msgspec.Struct, frozen=True, kw_only=True):
    """What an owner tells the other commands, in `<name>.json`."""

    owner: int
    url: str


class _Share:
    """The right to run one server in a home folder: a lock that the kernel frees when its owner dies."""

    def __init__(self, home: Path, name: str) -> None:
        self._name = name
        self._state = home / f"{name}.json"
        self._lock: IO[str] = (home / f"{name}.lock").open("a+", encoding="ascii")

    def take(self) -> bool:
        """Try to become the owner."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self._state.unlink(missing_ok=True)
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()
        return True

    def publish(self, url: str) -> None:
        """Tell the other commands where the server listens."""
        part = self._state.with_suffix(".new")
        part.touch(mode=0o600)
        part.write_bytes(msgspec.json.encode(_State(owner=os.getpid(), url=url)))
        part.rename(self._state)

    def published(self) -> str | None:
        """Address told by the owner that now holds the lock, None while it is still starting."""
        self._lock.seek(0)
        with contextlib.suppress(OSError, ValueError, msgspec.DecodeError):
            state = msgspec.json.decode(self._state.read_bytes(), type=_State)
            if state.owner == int(self._lock.read() or 0):
                return state.url
        return None

    def release(self) -> None:
        """Give the right away. Closing frees the lock."""
        if not self._lock.closed:
            self._state.unlink(missing_ok=True)
            self._lock.close()

    def leave(self) -> None:
        """Stop looking at another owner's server."""
        self._lock.close()


class Services:
    """The running servers. `database_url` or `redis_url` is None where that one was not asked for.

    A context manager; `stop` ends only the servers that this process started.
    """

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._owned: list[tuple[_Launcher, _Share]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def owned(self) -> bool:
        """True when this process started at least one of the servers."""
        return bool(self._owned)

    @property
    def database_url(self) -> str | None:
        """`postgresql://...` of the embedded Postgres."""
        return self._urls.get("postgres")

    @property
    def redis_url(self) -> str | None:
        """`redis://...` of the embedded Valkey."""
        return self._urls.get("valkey")

    def environ(self) -> dict[str, str]:
        """Variables that tell a child process where the servers are."""
        urls = {"DATABASE_URL": self.database_url, "REDIS_URL": self.redis_url}
        return {name: url for name, url in urls.items() if url}

    def pids(self) -> dict[str, int]:
        """Process ids of the servers started here, by `postgres` and `valkey`."""
        return {launcher.name: launcher.pid for launcher, _ in self._owned}

    def stop(self) -> None:
        """Stop what was started here; the data stays. A second call does nothing."""
        while self._owned:
            launcher, share = self._owned.pop()
            launcher.stop()
            share.release()

    def begin(self, home: Path, name: str, make: Callable[[], _Launcher]) -> Callable[[], None]:
        """Launch a server or find its owner; the returned function waits until it answers."""
        share = _Share(home, name)
        if not share.take():
            return lambda: self._join(share, name)
        try:
            launcher = make()
            self._owned.append((launcher, share))
            launcher.launch()
        except BaseException:
            share.release()
            raise

        def wait() -> None:
            launcher.wait()
            share.publish(launcher.url)
            self._urls[name] = launcher.url

        return wait

    def _join(self, share: _Share, name: str) -> None:
        try:
            deadline = time.monotonic() + START_SECONDS
            while (url := share.published()) is None:
                if time.monotonic() > deadline:
                    raise DependencyUnavailable(
                        f"The embedded {name} of another command does not come up",
                        why=f"no address after {START_SECONDS:g} s",
                        fix="stop the other command, or set AFTERCHECK_HOME to another folder",
                    )
                time.sleep(0.05)
            self._urls[name] = url
        finally:
            share.leave()


def start(
    home: Path,
    *,
    postgres: bool = True,
    valkey: bool = True,
    postgres_port: int = 0,
    valkey_port: int = 0,
    durable: bool = True,
) -> Services:
    """Start the servers of a home folder, or join those that another command of it already runs.

    Args:
        home: folder of data, logs and locks; made when missing. Data may lie below the temp folder instead, see
            `identity`.
        postgres: start or join Postgres.
        valkey: start or join Valkey.
        postgres_port: loopback port; 0 = any free one.
        valkey_port: loopback port; 0 = any free one.
        durable: False only for tests: Postgres then skips every fsync.

    Raises:
        ConfigurationError: the `[embedded]` extra is missing, a port is taken, or the folder cannot be used.
        DependencyUnavailable: a server does not come up; the message quotes its log.
    """
    who = identity.choose(home, binaries.find())
    services = Services()
    try:
        # Both are launched before either is waited for.
        finish: list[Callable[[], None]] = []
        if valkey:
            finish.append(services.begin(home, "valkey", lambda: Valkey(who, port=valkey_port)))
        if postgres:
            finish.append(
                services.begin(home, "postgres", lambda: Postgres(who, port=postgres_port, durable=durable))
            )
        for wait in finish:
            wait()
    except BaseException:
        services.stop()
        raise
    return services


def ensure(settings: Settings) -> Services | None:
    """Start or join what `DATABASE_URL` and `REDIS_URL` leave out; None when both are set.

    Raises:
        ConfigurationError, DependencyUnavailable: as `start`.
    """
    if not settings.embedded:
        return None
    return start(settings.home, postgres=settings.database_url is None, valkey=settings.redis_url is None)
