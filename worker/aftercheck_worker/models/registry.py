"""Model folders: what may be loaded, and the proof that it is what was released (S29, F22).

A folder holds `config.json` with the sha256 of every other file. Only ONNX and safetensors are read; anything that
can carry code (pickles, `auto_map`, Python files) is refused, and nothing is ever downloaded here.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from aftercheck_worker.errors import ModelRefused

SHIPPED: Final = Path(__file__).parent / "weights"
"""Weights that the wheel carries."""

_ALLOWED: Final = frozenset({".onnx", ".safetensors", ".json", ".md", ".txt"})
_READ: Final = 1 << 20


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`config.json` of a model folder.

    Attributes:
        name, revision: identity; both are part of `evaluator_version`.
        kind: `pair` (premise, claim) or `token`.
        files: sha256 of each file of the folder, by name.
        max_tokens: longest input in tokens; the premise is cut, never the claim.
        window_words: words of an evidence window that the weights read best.
        thresholds: calibration and thresholds that were fitted with these weights.
        answer: coefficients of `stages.calibration.AnswerCalibration`.
        languages: ISO codes that the model was measured on.
    """

    name: str
    revision: str
    kind: str = "pair"
    files: dict[str, str]
    max_tokens: int = 512
    window_words: int = 90
    languages: list[str] = []
    thresholds: dict[str, float] = {}
    answer: dict[str, float] | None = None
    auto_map: dict[str, object] | None = None


def load_config(folder: Path) -> ModelConfig:
    """Read and check a model folder.

    Raises:
        ModelRefused: the folder, a file or its hash is not what `config.json` says, or a file may carry code.
    """
    config = _read(folder)
    if config.auto_map is not None:
        raise ModelRefused(
            f"Model {config.name} needs remote code", why="config.json has auto_map", fix="choose another model"
        )
    for path in sorted(folder.iterdir()):
        if path.suffix not in _ALLOWED:
            raise ModelRefused(
                f"Model {config.name} holds {path.name}",
                why="only ONNX and safetensors are loaded; other files may carry code",
                fix="fetch a release without it, or remove the file",
            )
    for name, expected in config.files.items():
        _check(folder / name, expected, config.name)
    return config


def fingerprint(config: ModelConfig) -> str:
    """One sha256 over the hashes of all files of a model."""
    joined = "\n".join(f"{name} {digest}" for name, digest in sorted(config.files.items()))
    return hashlib.sha256(joined.encode()).hexdigest()


def _read(folder: Path) -> ModelConfig:
    try:
        return msgspec.json.decode((folder / "config.json").read_bytes(), type=ModelConfig)
    except OSError as error:
        raise ModelRefused(
            f"No model in {folder.name}", why=str(error.strerror), fix="run `aftercheck models list`"
        ) from None
    except msgspec.DecodeError as error:
        raise ModelRefused(
            f"Model {folder.name} has an unreadable config.json", why=str(error), fix="fetch the model again"
        ) from None


def _check(path: Path, expected: str, model: str) -> None:
    if not path.is_file():
        raise ModelRefused(
            f"Model {model} lacks {path.name}", why="the file is missing", fix="run `aftercheck models fetch`"
        )
    stat = path.stat()
    found = _sha256(path, stat.st_size, stat.st_mtime_ns)
    if found != expected:
        raise ModelRefused(
            f"Model {model}: {path.name} is not the released file",
            why=f"sha256 is {found[:12]}..., expected {expected[:12]}...",
            fix="run `aftercheck models fetch`",
        )


@lru_cache(maxsize=64)
def _sha256(path: Path, size: int, changed: int) -> str:
    """Hash once per (path, size, time of change)."""
    del size, changed
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_READ):
            digest.update(block)
    return digest.hexdigest()
