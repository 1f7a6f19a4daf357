"""Write a release folder: model.onnx, tokenizer.json, config.json (the card is written by `card`).

python -m training.export FOLDER [--weights FILE.pt]
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np
import onnx
import torch

from .encode import load_tokenizer
from .format import CLAIM, GAP, MAX_TOKENS, PREVIOUS, QUESTION
from .fusion import token_weights
from .graph import build_graph
from .model import backbone_folder
from .settings import load_settings
from .window import DEFAULT_BUDGET_WORDS

NAME = "aftercheck-verifier-en"


def digest(path: Path) -> str:
    """sha256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load_weights(path: Path) -> dict[str, torch.Tensor]:
    """Weights of a file: a plain state dict, or the averaged weights of a checkpoint."""
    state = torch.load(path, weights_only=True)
    return dict(state.get("average", state))


def config(folder: Path) -> dict[str, object]:
    """What the product must know to run the model; calibration and stacker are added by `calibrate`."""
    return {
        "name": NAME,
        "revision": "1",
        "kind": "pair",
        "languages": ["en"],
        "max_tokens": MAX_TOKENS,
        "files": {name: digest(folder / name) for name in ("model.onnx", "tokenizer.json")},
        "thresholds": {},
        "window_words": DEFAULT_BUDGET_WORDS,
        "markers": {"gap": GAP, "question": QUESTION, "previous": PREVIOUS, "claim": CLAIM},
        "inputs": "input_ids, token_type_ids, attention_mask: int64 (n, length)",
        "outputs": "logits: support (n), contradiction (n) if not supported, tokens (n, length) unsupported; "
        "signals (n, 3): raw support logit, greatest 3-token mean of the claim, weighted containment",
    }


def export(weights: Path, folder: Path) -> None:
    """Write the folder and print its sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {
        k: v.float().numpy().astype(np.float32) for k, v in load_weights(weights).items() if v.dtype.is_floating_point
    }
    rows = load_settings().rows
    phase = next(path for name in ("c", "e") if (path := rows / f"{name}.npz").exists())
    model = build_graph(state, token_weights(phase))
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer = load_tokenizer(backbone_folder())
    tokenizer.no_truncation()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    (folder / "config.json").write_text(json.dumps(config(folder), indent=1) + "\n")
    for path in sorted(folder.iterdir()):
        print(f"{path.name} {path.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    """Export the weights named, or the averaged final ones of the work folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", type=Path)
    options = parser.parse_args()
    export(options.weights or load_settings().work / "final-average.pt", options.folder)


if __name__ == "__main__":
    main()
