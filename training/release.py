"""Weights of a release folder as a state dict of `Verifier`, so that a later run starts where a release stands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper

from .graph import LAYERS

_LINEAR = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "joined": "attention.output.dense",
    "inner": "intermediate.dense",
    "outer": "output.dense",
}
_NORMS = {"joined.norm": "attention.output.LayerNorm", "norm": "output.LayerNorm"}


def load_release(folder: Path) -> dict[str, torch.Tensor]:
    """Undo `graph.build_graph`: 8-bit weights times their scales; what 8 bits lost stays lost."""
    held = {c.name: numpy_helper.to_array(c) for c in onnx.load(str(folder / "model.onnx")).graph.initializer}
    state: dict[str, NDArray[np.float32]] = {}
    embeddings = "encoder.embeddings"
    state[f"{embeddings}.word_embeddings.weight"] = held["words.int8"] * held["words.scale"]
    state[f"{embeddings}.position_embeddings.weight"] = held["positions.table"]
    state[f"{embeddings}.token_type_embeddings.weight"] = held["types.table"]
    state[f"{embeddings}.LayerNorm.weight"] = held["embedded.norm.gain"]
    state[f"{embeddings}.LayerNorm.bias"] = held["embedded.norm.shift"]
    for number in range(LAYERS):
        prefix = f"encoder.encoder.layer.{number}"
        for short, long in _LINEAR.items():
            name = f"layer{number}.{short}"
            state[f"{prefix}.{long}.weight"] = (held[f"{name}.int8"] * held[f"{name}.scale"]).T
            state[f"{prefix}.{long}.bias"] = held[f"{name}.bias"]
        for short, long in _NORMS.items():
            state[f"{prefix}.{long}.weight"] = held[f"layer{number}.{short}.gain"]
            state[f"{prefix}.{long}.bias"] = held[f"layer{number}.{short}.shift"]
    for head, columns in (("rows", ("support", "contradiction")), ("tokens", ("tokens",))):
        state[f"{head}.weight"] = np.concatenate([held[f"{name}.head"].T for name in columns])
        state[f"{head}.bias"] = np.concatenate([held[f"{name}.bias"] for name in columns])
    return {name: torch.from_numpy(np.ascontiguousarray(value, np.float32)) for name, value in state.items()}
