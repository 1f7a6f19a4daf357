"""A knowledge base from a folder or a JSONL file (R8). Off by default; its evidence is marked `knowledge_base`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from aftercheck_schemas.interaction import Passage
from aftercheck_worker.errors import InputError
from aftercheck_worker.stages.retrieval import PassageStore

SUFFIXES: Final = (".md", ".rst", ".txt")
MAX_BYTES: Final = 64 * 1024 * 1024


class _Row(msgspec.Struct):
    """One line of a JSONL file; other fields are ignored."""

    text: str
    source_id: str = ""
    trust: float = 1.0


def load(path: Path) -> PassageStore:
    """Read every text file under a folder, or every line `{source_id, text, trust?}` of a JSONL file.

    Args:
        path: a folder (`.md`, `.rst`, `.txt`, read recursively, in name order) or a `.jsonl` file.

    Raises:
        InputError: the path does not exist, is larger than 64 MiB in all, or a line is no such object.
    """
    if path.is_dir():
        return PassageStore(_folder(path))
    if path.is_file():
        return PassageStore(_lines(path))
    raise InputError(
        f"The knowledge base {path} cannot be read", why="there is no such file or folder", fix="check the path"
    )


def _folder(path: Path) -> list[Passage]:
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    _bounded(path, sum(file.stat().st_size for file in files))
    texts = ((file, file.read_text(encoding="utf-8", errors="replace")) for file in files)
    return [
        Passage(source_id=file.relative_to(path).as_posix(), text=text, kind="knowledge_base", name=file.name)
        for file, text in texts
        if text.strip()
    ]


def _lines(path: Path) -> list[Passage]:
    _bounded(path, path.stat().st_size)
    out: list[Passage] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line, type=_Row)
        except msgspec.MsgspecError as error:
            raise InputError(
                f"Line {number} of {path} is no passage", why=str(error), fix='write {"text": "..."}'
            ) from error
        if row.text.strip():
            out.append(
                Passage(
                    source_id=row.source_id or f"line:{number}", text=row.text, kind="knowledge_base", trust=row.trust
                )
            )
    return out


def _bounded(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise InputError(f"The knowledge base {path} is too large", why=f"{size} bytes", fix="keep it under 64 MiB")
