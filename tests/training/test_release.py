"""The shipped folder: hashes, size, outputs, independence of batch neighbours."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "worker/aftercheck_worker/models/weights/aftercheck-verifier-en"
pytestmark = pytest.mark.skipif(not (FOLDER / "model.onnx").exists(), reason="no weights shipped")
onnxruntime = pytest.importorskip("onnxruntime")
tokenizers = pytest.importorskip("tokenizers")


def test_files_are_what_the_config_says() -> None:
    config = json.loads((FOLDER / "config.json").read_text())
    for name, expected in config["files"].items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == expected
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 25_000_000
    assert (FOLDER / "card.md").stat().st_size > 1000


def test_markers_are_single_tokens() -> None:
    tokenizer = tokenizers.Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    assert [tokenizer.token_to_id(f"[unused{n}]") for n in (2, 3, 4, 5)] == [3, 4, 5, 6]
    assert tokenizer.encode("[unused5] x").ids[1] == 6


def test_a_score_does_not_depend_on_its_batch() -> None:
    session = onnxruntime.InferenceSession(str(FOLDER / "model.onnx"), providers=["CPUExecutionProvider"])
    generator = np.random.default_rng(1)

    def run(ids: np.ndarray, width: int) -> tuple[np.ndarray, ...]:
        padded = np.zeros((len(ids), width), np.int64)
        padded[:, : ids.shape[1]] = ids
        mask = (padded > 0).astype(np.int64)
        types = mask.copy()
        types[:, :10] = 0
        feed = {"input_ids": padded, "token_type_ids": types, "attention_mask": mask}
        return tuple(session.run(["support", "contradiction", "tokens"], feed))

    ids = generator.integers(1000, 20000, (4, 24))
    together, alone = run(ids, 60), run(ids[:1], 24)
    assert together[0].shape == together[1].shape == (4,)
    assert together[2].shape == (4, 60)
    assert abs(float(together[0][0] - alone[0][0])) < 1e-3
    assert np.abs(together[2][0, :24] - alone[2][0]).max() < 1e-3
