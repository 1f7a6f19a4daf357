"""What may not be in a model: pickles, which run code when they are read, and code that its author wants to run.

Names and contents are both looked at: a pickle renamed to `.safetensors` is a pickle.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from aftercheck_worker.errors import ModelRefused

ALLOWED: Final = frozenset({".onnx", ".safetensors", ".json", ".jinja", ".md", ".txt"})
"""`.jinja` is a chat template; transformers renders it in a sandbox."""
MAX_JSON: Final = 64 * 1024 * 1024
_PICKLES: Final = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
"""First bytes of torch.save (a zip) and of pickle protocols 2 to 5."""


class _Marks(msgspec.Struct):
    """What of a JSON file asks for code; a file that is no object asks for none."""

    auto_map: object = None


def refuse_unsafe(path: Path, model: str) -> None:
    """Look at one file of a model.

    Raises:
        ModelRefused: the file is a pickle, asks for remote code, or is of a kind that is never loaded.
    """
    if path.suffix not in ALLOWED:
        raise ModelRefused(
            f"Model {model} holds {path.name}",
            why="only ONNX and safetensors are loaded; other files may carry code",
            fix="fetch a release without it, or remove the file",
        )
    head = _head(path, 16)
    if path.suffix in (".onnx", ".safetensors") and head.startswith(_PICKLES):
        raise ModelRefused(
            f"Model {model}: {path.name} is a pickle",
            why="a pickle runs code when it is read",
            fix="choose a release in safetensors or ONNX",
        )
    if path.suffix == ".safetensors" and head[8:9] != b"{":
        raise ModelRefused(
            f"Model {model}: {path.name} is not in safetensors format",
            why="its header is not JSON",
            fix="choose a release in safetensors or ONNX",
        )
    if path.suffix == ".json" and _needs_code(path):
        raise ModelRefused(
            f"Model {model} needs remote code", why=f"{path.name} has auto_map", fix="choose another model"
        )


def _head(path: Path, size: int) -> bytes:
    with path.open("rb") as stream:
        return stream.read(size)


def _needs_code(path: Path) -> bool:
    """`auto_map` is how a model folder asks transformers to import Python files of its own."""
    if path.stat().st_size > MAX_JSON:
        return False
    try:
        return bool(msgspec.json.decode(path.read_bytes(), type=_Marks).auto_map)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
