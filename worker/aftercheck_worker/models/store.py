"""Installed models: those of the wheel and those below one folder, each checked against the lock before use.

Nothing is downloaded unless `fetch` is called with the place to take the files from.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final, Literal, cast

from aftercheck_worker.errors import DependencyUnavailable, ModelRefused
from aftercheck_worker.models.lock import Lock, LockedFile, LockedModel, digest
from aftercheck_worker.models.registry import SHIPPED
from aftercheck_worker.models.safety import refuse_unsafe

State = Literal["shipped", "installed", "absent"]
SECONDS: Final = 60.0
"""Longest silence of a server."""
_READ: Final = 1 << 20


class Store:
    """Model folders by name.

    Args:
        home: folder of fetched models.
        lock: what is known.
    """

    def __init__(self, home: Path, lock: Lock) -> None:
        self.home = home
        self.lock = lock

    def state(self, model: LockedModel) -> State:
        """Where a model is; says nothing of its hashes."""
        if (SHIPPED / model.name).is_dir():
            return "shipped"
        return "installed" if (self.home / model.name).is_dir() else "absent"

    def folder(self, name: str) -> Path:
        """Return the folder of a model after checking it.

        Raises:
            ModelRefused: unknown, absent, altered or unsafe.
        """
        model = self.lock.find(name)
        self.verify(model)
        return self._place(model)

    def verify(self, model: LockedModel) -> None:
        """Check that a folder holds the files of the lock and no others.

        Raises:
            ModelRefused: a file is missing, altered, pickled, asks for remote code or is not in the lock.
        """
        if self.state(model) == "absent":
            raise ModelRefused(
                f"Model {model.name} is not installed",
                why="nothing is downloaded by itself",
                fix=f"run `aftercheck models fetch {model.name} --from FOLDER_OR_URL`",
            )
        folder = self._place(model)
        for path in sorted(folder.iterdir()):
            refuse_unsafe(path, model.name)
            if path.name not in model.files:
                raise _refused(model, f"holds {path.name}", "the file is not in models.lock", "remove the file")
        for name, file in model.files.items():
            if not (folder / name).is_file():
                raise _refused(model, f"lacks {name}", "the file is missing", "fetch the model again")
            _compare(model, name, digest(folder / name), file)

    def fetch(self, name: str, source: str, *, told: Callable[[str, int], None] | None = None) -> Path:
        """Copy a model from a folder or an http(s) URL; all of it or nothing.

        Args:
            name: as in the lock.
            source: a folder that holds the files, or the URL before `/<file name>`.
            told: called with the name and the bytes of each file that arrived.

        Returns:
            Its folder.

        Raises:
            ModelRefused: unknown, altered or unsafe.
            DependencyUnavailable: the server does not answer or has no such file.
        """
        model = self.lock.find(name)
        if self.state(model) == "shipped":
            raise _refused(model, "comes with the package", "it is not fetched", "run `aftercheck models verify`")
        self.home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=self.home) as temporary:
            arrived = Path(temporary) / name
            arrived.mkdir()
            for file_name, file in model.files.items():
                with _open(source, file_name, model) as stream:
                    _copy(stream, arrived / file_name, model, file)
                refuse_unsafe(arrived / file_name, model.name)
                if told is not None:
                    told(file_name, file.size)
            place = self.home / name
            shutil.rmtree(place, ignore_errors=True)
            arrived.rename(place)
        return place

    def _place(self, model: LockedModel) -> Path:
        return (SHIPPED if self.state(model) == "shipped" else self.home) / model.name


def _open(source: str, name: str, model: LockedModel) -> BinaryIO:
    try:
        if source.startswith(("https://", "http://")):
            url = f"{source.rstrip('/')}/{name}"
            return cast("BinaryIO", urllib.request.urlopen(url, timeout=SECONDS))  # noqa: S310 - http(s) only
        return (Path(source) / name).open("rb")
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        raise DependencyUnavailable(
            f"Cannot fetch {name} of {model.name}", why=str(error), fix="check the URL and the network"
        ) from None
    except OSError as error:
        raise _refused(model, f"lacks {name}", error.strerror or "", "check the folder") from None


def _copy(stream: BinaryIO, path: Path, model: LockedModel, file: LockedFile) -> None:
    """Write at most the locked size, hashing on the way."""
    found, size = hashlib.sha256(), 0
    with path.open("wb") as sink:
        while block := stream.read(_READ):
            size += len(block)
            if size > file.size:
                raise _refused(
                    model,
                    f"{path.name} is not the released file",
                    f"it is longer than {file.size} bytes",
                    "check --from",
                )
            found.update(block)
            sink.write(block)
    _compare(model, path.name, found.hexdigest(), file)


def _compare(model: LockedModel, name: str, found: str, file: LockedFile) -> None:
    if found != file.sha256:
        raise _refused(
            model,
            f"{name} is not the released file",
            f"sha256 is {found[:12]}..., the lock says {file.sha256[:12]}...",
            "fetch the model again from its publisher",
        )


def _refused(model: LockedModel, what: str, why: str, fix: str) -> ModelRefused:
    return ModelRefused(f"Model {model.name} {what}", why=why, fix=fix)
