"""A Hugging Face model folder that may be loaded: safetensors, no code, and exactly the released bytes (S29)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aftercheck_worker.errors import ModelRefused
from aftercheck_worker.models.lock import digest
from aftercheck_worker.models.safety import refuse_unsafe

PLAIN: Final = frozenset({"LICENSE", "NOTICE", ".gitattributes", "USE_POLICY"})
"""Texts without a suffix."""


def checked(folder: Path, pinned: Mapping[str, str] | None = None) -> str:
    """Check a folder before anything of it is loaded.

    Args:
        folder: holds `config.json`, the tokenizer and `*.safetensors`.
        pinned: sha256 by file name, from `models.lock`; every file that is loaded must be in it. None trusts the
            folder as it is, for a model that the user made.

    Returns:
        One sha256 over names and hashes of all files, for `ModelInfo`.

    Raises:
        ModelRefused: a file may carry code, is missing, or is not the released one.
    """
    name = folder.name
    if not (folder / "config.json").is_file():
        raise ModelRefused(f"No model in {name}", why="it has no config.json", fix="name the folder of a model")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        if path.name not in PLAIN:
            refuse_unsafe(path, name)
    if not any(path.suffix == ".safetensors" for path in files):
        raise ModelRefused(
            f"Model {name} has no safetensors", why="weights of other kinds are not loaded", fix="none"
        )
    hashes = {path.relative_to(folder).as_posix(): digest(path) for path in files}
    if pinned is not None:
        _compare(name, hashes, pinned)
    joined = "\n".join(f"{one} {found}" for one, found in hashes.items())
    return hashlib.sha256(joined.encode()).hexdigest()


def _compare(name: str, hashes: Mapping[str, str], pinned: Mapping[str, str]) -> None:
    for file, expected in pinned.items():
        if hashes.get(file) != expected:
            raise ModelRefused(
                f"Model {name}: {file} is not the released file",
                why="it is missing" if file not in hashes else f"sha256 is {hashes[file][:12]}...",
                fix="fetch the model again",
            )
    extra = sorted(file for file in hashes if file not in pinned and not file.endswith(".md"))
    if extra:
        raise ModelRefused(
            f"Model {name} holds {extra[0]}", why="models.lock does not know it", fix="remove it, or pin it"
        )
