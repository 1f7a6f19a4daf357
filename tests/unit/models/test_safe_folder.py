"""What may be loaded from a model folder: safetensors, no code, the released bytes (S29)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from aftercheck_worker.errors import ModelRefused
from aftercheck_worker.models.safe_folder import checked

FILES = {
    "config.json": b'{"model_type": "gpt2"}',
    "model.safetensors": b"\x08" + b"\x00" * 7 + b"{}      ",
    "tokenizer.json": b"{}",
}
PINNED = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "judge"
    made.mkdir()
    for name, data in FILES.items():
        (made / name).write_bytes(data)
    return made


@pytest.mark.req("S29")
def test_a_released_folder_is_accepted_and_its_hash_moves_with_any_file(folder: Path) -> None:
    before = checked(folder, PINNED)

    (folder / "tokenizer.json").write_bytes(b"[]")

    assert checked(folder) != before
    assert len(before) == 64


@pytest.mark.req("S29")
@pytest.mark.parametrize("name", ["pytorch_model.bin", "modeling.py", "weights.pkl", "sub/code.py", "model.pt"])
def test_files_that_may_carry_code_are_refused(folder: Path, name: str) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")

    with pytest.raises(ModelRefused, match="may carry code"):
        checked(folder)


@pytest.mark.req("S29")
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_remote_code_is_refused(folder: Path, name: str) -> None:
    (folder / name).write_text(json.dumps({"auto_map": {"AutoModel": "x--modeling.X"}}))

    with pytest.raises(ModelRefused, match="remote code"):
        checked(folder)


@pytest.mark.req("S29")
def test_other_bytes_a_missing_file_and_an_unknown_one_are_refused(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(FILES["model.safetensors"] + b"x")
    with pytest.raises(ModelRefused, match="not the released file"):
        checked(folder, PINNED)
    (folder / "model.safetensors").write_bytes(FILES["model.safetensors"])
    (folder / "added.json").write_text("{}")
    with pytest.raises(ModelRefused, match=r"does not know it"):
        checked(folder, PINNED)
    (folder / "added.json").unlink()
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelRefused, match="missing"):
        checked(folder, PINNED)


def test_what_is_no_model_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match=r"no config\.json"):
        checked(tmp_path)
    (folder / "tokenizer.json").unlink()
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelRefused, match="no safetensors"):
        checked(folder)
