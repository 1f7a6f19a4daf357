"""As whom the servers run. Postgres refuses root, and a private home must stay private: no useradd, no chmod.

In this order: not root: as we are; root and every folder open to others: as uid 65534; root and a private folder:
uid 65534 of a user namespace, which the outer world sees as root; no namespaces allowed: copies of the programs
(and, where the home is private, of the data folder) below the temp folder, as uid 65534.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Literal

import msgspec

from aftercheck_worker.embedded.binaries import Binaries
from aftercheck_worker.errors import ConfigurationError

NOBODY = 65534
_UNSHARE = ("unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}", "--")

Kind = Literal["direct", "nobody", "namespace", "copy"]


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a server: by which programs, as whom, with its data below `root`."""

    kind: Kind
    binaries: Binaries
    root: Path

    @property
    def uid(self) -> int | None:
        """Owner of the data, None where it is whoever we are."""
        return NOBODY if self.kind in ("nobody", "copy") else None

    def folder(self, name: str) -> Path:
        """Make `root/name`, readable for its owner only."""
        path = self.root / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.own(path)
        return path

    def own(self, path: Path) -> None:
        """Give a file or folder to the identity."""
        if self.uid is not None:
            os.chown(path, self.uid, self.uid)

    def popen(self, args: list[str], *, stdin: int, log: int) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own, so that Ctrl-C in our terminal does not reach it."""
        if self.kind == "namespace":
            args = [*_UNSHARE, *args]
        return subprocess.Popen(  # noqa: S603 - our own servers
            args,
            stdin=stdin,
            stdout=log,
            stderr=log,
            cwd="/",
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"},
            start_new_session=True,
            extra_groups=None if self.uid is None else [],
            user=self.uid,
            group=self.uid,
        )

    def works(self) -> bool:
        """Tell whether both servers can be executed this way."""
        for program in (self.binaries.postgres, self.binaries.valkey):
            try:
                process = self.popen([str(program), "--version"], stdin=subprocess.DEVNULL, log=subprocess.DEVNULL)
            except (OSError, subprocess.SubprocessError):
                return False
            if process.wait(20) != 0:
                return False
        return True


def choose(home: Path, binaries: Binaries) -> Identity:
    """Pick the first identity that works here; `home` gets made when it does not exist.

    Raises:
        ConfigurationError: `home` cannot be written, or root can start the servers in no way.
    """
    home = home.resolve()
    _make(home)
    direct = Identity(kind="direct", binaries=binaries, root=home)
    if os.geteuid() != 0:
        return direct
    nobody = Identity(kind="nobody", binaries=binaries, root=home)
    if _open_to_others(home) and _open_to_others(binaries.postgres.parent) and nobody.works():
        return nobody
    namespace = Identity(kind="namespace", binaries=binaries, root=home)
    if namespace.works():
        return namespace
    return _copied(home, binaries)


def _make(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(f"no write permission on {home}")
    except OSError as error:
        raise ConfigurationError(
            "The folder of the embedded services cannot be used",
            why=str(error),
            fix="set AFTERCHECK_HOME to a folder that you can write",
        ) from None


def _open_to_others(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


def _copied(home: Path, binaries: Binaries) -> Identity:
    digest = hashlib.sha256(str(home).encode()).hexdigest()[:16]
    base = Path(tempfile.gettempdir()).resolve() / f"aftercheck-{os.geteuid()}-{digest}"
    base.mkdir(mode=0o711, exist_ok=True)
    if base.is_symlink() or base.stat().st_uid != os.geteuid():
        raise ConfigurationError(
            "The embedded services cannot start",
            why=f"{base} belongs to somebody else",
            fix="remove it or set TMPDIR",
        )
    target = base / "programs"
    if not target.is_dir():
        part = Path(tempfile.mkdtemp(dir=base))
        for folder in binaries.folders:
            shutil.copytree(folder, part / folder.name, symlinks=True)
        part.chmod(0o711)
        part.rename(target)
    root = home if _open_to_others(home) else base / "data"
    if root != home:
        root.mkdir(mode=0o711, exist_ok=True)
    found = Identity(kind="copy", binaries=binaries.moved(target), root=root)
    if not found.works():
        raise ConfigurationError(
            "The embedded services cannot start as root",
            why=f"uid {NOBODY} can run neither the installed programs nor copies in {base}",
            fix="run as an ordinary user, or set DATABASE_URL and REDIS_URL",
        )
    return found
