"""What Postgres and Valkey have in common: ports, logs, stale processes, and an end together with their owner."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path

from aftercheck_worker.embedded.identity import Identity
from aftercheck_worker.errors import ConfigurationError, DependencyUnavailable

LOOPBACK = "127.0.0.1"
START_SECONDS = 30.0
_POLL_SECONDS = 0.02


class Server:
    """A started server that ends when we say so, or when this process dies in whatever way."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], stop_signal: signal.Signals, log: Path) -> None:
        self.name, self.process, self.log = name, process, log
        self._signal = stop_signal
        self._watchdog = _watch(process.pid, stop_signal)

    def wait_until(self, ready: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        """Return when `ready()` is true.

        Raises:
            DependencyUnavailable: the server ended, or was not ready in time; the last line of its log says why.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            ended = self.process.poll()
            if ended is not None or time.monotonic() > deadline:
                why = last_line(self.log)
                self.stop()
                state = f"ended with status {ended}" if ended is not None else f"was not ready after {seconds:g} s"
                raise DependencyUnavailable(f"The embedded {self.name} {state}", why=why, fix=f"see {self.log}")
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """End the server and wait for it; a second call does nothing."""
        self._watchdog.kill()
        self._watchdog.wait()
        if self._watchdog.stdin:
            self._watchdog.stdin.close()
        for number, seconds in ((self._signal, 30), (signal.SIGQUIT, 5), (signal.SIGKILL, 5)):
            if self.process.poll() is not None:
                return
            self.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)


def _watch(pid: int, stop_signal: signal.Signals) -> subprocess.Popen[bytes]:
    # The shell's `read` sees end-of-file when the last copy of our pipe end closes, kill -9 included.
    # (PR_SET_PDEATHSIG would be shorter, but is lost when the uid changes and fires when the starting *thread* ends.)
    return subprocess.Popen(  # noqa: S603 - a constant script
        ["/bin/sh", "-c", 'read -r _; kill -s "$1" "$2"', "sh", stop_signal.name.removeprefix("SIG"), str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def end_stale(pid_file: Path, program: str, stop_signal: signal.Signals) -> None:
    """End the server that a killed owner left behind, and remove its pid file.

    The caller holds the lock of the home folder, so no living owner can exist. A pid that now belongs to another
    program is left alone.

    Raises:
        DependencyUnavailable: it does not end.
    """
    try:
        pid = int(pid_file.read_text(encoding="ascii").split("\n", 1)[0])
    except FileNotFoundError:
        return
    except (ValueError, OSError):
        pid = 0
    if pid > 1 and program in command_of(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, stop_signal)
        deadline = time.monotonic() + 15
        while program in command_of(pid):
            if time.monotonic() > deadline:
                raise DependencyUnavailable(
                    f"An earlier {program} still runs", why=f"process {pid} does not end", fix=f"kill {pid}"
                )
            time.sleep(_POLL_SECONDS)
    pid_file.unlink(missing_ok=True)


def command_of(pid: int) -> str:
    """Command line of a running process, "" when there is none (a zombie has none)."""
    if Path("/proc/self").exists():
        with contextlib.suppress(OSError):
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return ""
    command = ["ps", "-o", "command=", "-p", str(pid)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a constant program
    return found.stdout.strip()


def port_for(wanted: int, name: str) -> int:
    """Return `wanted`, or a free loopback port when it is 0.

    Raises:
        ConfigurationError: the wanted port is taken.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError as error:
            raise ConfigurationError(
                f"Port {wanted} for the embedded {name} cannot be used",
                why=error.strerror or str(error),
                fix="stop what listens there, or choose another port (0 = any free one)",
            ) from None
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def log_file(path: Path) -> Generator[int]:
    """Open a log for the server to append to; one that has grown past 16 MiB starts anew."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    if path.exists() and path.stat().st_size > 16 * 2**20:
        flags |= os.O_TRUNC
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def last_line(log: Path) -> str:
    """Last line of a log, for an error message."""
    with contextlib.suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        told = [line.strip() for line in lines if line.strip()]
        fatal = [line for line in told[-20:] if "FATAL" in line or "error" in line]
        return (fatal or told or [""])[-1][:300]
    return ""


def password(identity: Identity, folder: Path) -> str:
    """Read the random password kept in `folder`, made on first use."""
    path = folder / "password"
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(encoding="ascii").strip()
    word = secrets.token_urlsafe(24)
    part = folder / "password.new"
    part.touch(mode=0o600)
    part.write_text(word + "\n", encoding="ascii")
    identity.own(part)
    part.rename(path)
    return word
