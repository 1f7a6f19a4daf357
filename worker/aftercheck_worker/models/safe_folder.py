"""A Hugging Face model folder that may be loaded: safetensors, no code, and exactly the released bytes (S29)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final, cast

from aftercheck_worker.errors import ModelRefused

ALLOWED: Final = frozenset({".safetensors", ".json", ".jinja", ".txt", ".md", ".model"})
"""Suffixes of files that hold no code; `.model` is a SentencePiece vocabulary."""
PLAIN: Final = frozenset({"LICENSE", "NOTICE", ".gitattributes", "USE_POLICY"})
_READ: Final = 1 << 20


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
        if path.suffix not in ALLOWED and path.name not in PLAIN:
            raise ModelRefused(
                f"Model {name} holds {path.name}",
                why="only safetensors are loaded; other files may carry code",
                fix="remove the file, or choose a release without it",
            )
    if not any(path.suffix == ".safetensors" for path in files):
        raise ModelRefused(
            f"Model {name} has no safetensors", why="weights of other kinds are not loaded", fix="none"
        )
    for path in files:
        if path.suffix == ".json" and "auto_map" in _fields(path):
            raise ModelRefused(
                f"Model {name} needs remote code", why=f"{path.name} has auto_map", fix="choose another model"
            )
    hashes = {path.relative_to(folder).as_posix(): _sha256(path) for path in files}
    if pinned is not None:
        _compare(name, hashes, pinned)
    joined = "\n".join(f"{one} {digest}" for one, digest in hashes.items())
    return hashlib.sha256(joined.encode()).hexdigest()


def _compare(name: str, hashes: Mapping[str, str], pinned: Mapping[str, str]) -> None:
    for file, digest in pinned.items():
        if hashes.get(file) != digest:
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


def _fields(path: Path) -> dict[str, object]:
    try:
        found: object = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ModelRefused(
            f"Model {path.parent.name} has an unreadable {path.name}", why="it is no JSON", fix="fetch it again"
        ) from None
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_READ):
            digest.update(block)
    return digest.hexdigest()
