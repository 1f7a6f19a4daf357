"""`models.lock`: which models are known, at which revision, and the sha256 of every file (S29).

The lock is the only thing that says what a model is. Where the bytes come from does not matter: they have to match.
Your own file of the same form joins it by `AFTERCHECK_MODELS_LOCK`; `aftercheck models pin FOLDER` writes an entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec

from aftercheck_worker.errors import ModelRefused
from aftercheck_worker.models.safety import refuse_unsafe

SHIPPED: Final = Path(__file__).with_name("models.lock")
Kind = Literal["pair", "token", "encoder", "causal"]
Format = Literal["onnx", "safetensors"]
_READ: Final = 1 << 20


class LockedFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file: sha256 hex and size in bytes."""

    sha256: str
    size: int


class LockedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model.

    Attributes:
        name, revision: identity; both are part of `evaluator_version`.
        kind: `pair` (premise, claim), `token` (unsupported spans), `encoder` or `causal` (a local judge).
        format: of the weights; decides the back end.
        licence: SPDX id of the weights.
        origin: where its author publishes it, for humans; nothing is fetched from there by itself.
        files: by name, no folders.
    """

    name: str
    revision: str
    kind: Kind
    format: Format
    licence: str = ""
    origin: str = ""
    files: dict[str, LockedFile]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    models: list[LockedModel]

    def find(self, name: str) -> LockedModel:
        """Return the entry `name`.

        Raises:
            ModelRefused: there is none.
        """
        for model in self.models:
            if model.name == name:
                return model
        known = ", ".join(model.name for model in self.models)
        raise ModelRefused(
            f"Model {name} is not in models.lock", why=f"known are {known}", fix="pin it with `aftercheck models pin`"
        )


def read(*extra: Path | None) -> Lock:
    """Read the shipped lock and further ones; a later entry of a name replaces an earlier one.

    Raises:
        ModelRefused: a file cannot be read, or names a path outside the model's folder.
    """
    found: dict[str, LockedModel] = {}
    for path in (SHIPPED, *extra):
        if path is not None:
            found |= {model.name: model for model in _read(path).models}
    return Lock(models=list(found.values()))


def _read(path: Path) -> Lock:
    try:
        lock = msgspec.json.decode(path.read_bytes(), type=Lock)
    except OSError as error:
        raise ModelRefused(
            f"Cannot read {path.name}", why=error.strerror or "", fix="check AFTERCHECK_MODELS_LOCK"
        ) from None
    except msgspec.DecodeError as error:
        raise ModelRefused(
            f"{path.name} is no lock", why=str(error), fix="write it with `aftercheck models pin`"
        ) from None
    for model in lock.models:
        for name in (model.name, *model.files):
            if not name or name.startswith(".") or "/" in name or "\\" in name:
                raise ModelRefused(
                    f"{path.name} names {name!r}", why="names hold no folders", fix="write a plain name"
                )
    return lock


def pin(
    folder: Path,
    *,
    name: str,
    revision: str,
    kind: Kind,
    licence: str = "",
    origin: str = "",
    skip: Iterable[str] = (),
) -> LockedModel:
    """Return the entry of a folder as it is now, after looking for pickles and remote code.

    Raises:
        ModelRefused: see `safety.refuse_unsafe`; or the folder holds no weights.
    """
    if not folder.is_dir():
        raise ModelRefused(
            f"There is no folder {folder.name}", why="a model is a folder of files", fix="check the path"
        )
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in set(skip)]
    for path in paths:
        refuse_unsafe(path, name)
    suffixes = {path.suffix for path in paths}
    if not suffixes & {".onnx", ".safetensors"}:
        raise ModelRefused(f"{folder.name} holds no weights", why="no ONNX or safetensors file", fix="check the path")
    return LockedModel(
        name=name,
        revision=revision,
        kind=kind,
        format="onnx" if ".onnx" in suffixes else "safetensors",
        licence=licence,
        origin=origin,
        files={path.name: LockedFile(sha256=digest(path), size=path.stat().st_size) for path in paths},
    )


def digest(path: Path) -> str:
    """sha256 hex of a file."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_READ):
            found.update(block)
    return found.hexdigest()


def write(path: Path, model: LockedModel) -> None:
    """Put an entry into a lock file, replacing the one of its name."""
    models = [one for one in _read(path).models if one.name != model.name] if path.exists() else []
    lock = Lock(models=sorted([*models, model], key=lambda one: one.name))
    path.write_bytes(msgspec.json.format(msgspec.json.encode(lock), indent=1) + b"\n")
