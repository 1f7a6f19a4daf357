"""Scorers of (window, segment B) pairs: a torch checkpoint, the exported ONNX file, the trial, containment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from .encode import encode_texts, load_tokenizer
from .format import MAX_TOKENS
from .model import Verifier, backbone_folder
from .window import terms

Pairs = Sequence[tuple[str, str]]
Logits = NDArray[np.float32]
Score = Callable[[Pairs], Logits]
"""(window, segment B) pairs -> (n, 3): support, contradiction, greatest 3-token mean of the token head."""


def pad(encodings: Sequence[Encoding]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """ids, types, mask as (n, length) int64."""
    length = max(len(e.ids) for e in encodings)
    out = tuple(np.zeros((len(encodings), length), np.int64) for _ in range(3))
    for i, encoding in enumerate(encodings):
        for array, values in zip(out, (encoding.ids, encoding.type_ids, encoding.attention_mask), strict=True):
            array[i, : len(values)] = values
    return out  # type: ignore[return-value]


def token_peak(tokens: NDArray[Any], types: NDArray[Any], mask: NDArray[Any]) -> Logits:
    """Greatest moving mean of three token logits inside segment B, (n)."""
    out = np.zeros(len(tokens), np.float32)
    for i in range(len(tokens)):
        inside = tokens[i][(types[i] == 1) & (mask[i] == 1)][2:-1]
        if len(inside):
            width = min(3, len(inside))
            out[i] = np.convolve(inside, np.ones(width) / width, "valid").max()
    return out


def in_length_order(pairs: Pairs, batch: int, run: Callable[[Pairs], Logits]) -> Logits:
    """Run batches of similar length; results in the order of the pairs."""
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]) + len(pairs[i][1]))
    out = np.zeros((len(pairs), 3), np.float32)
    for start in range(0, len(order), batch):
        part = order[start : start + batch]
        out[part] = run([pairs[i] for i in part])
    return out


def torch_scorer(state: dict[str, torch.Tensor], batch: int = 24) -> Score:
    """Scorer of a state dict of `Verifier`, bf16 autocast."""
    model = Verifier()
    model.load_state_dict(state)
    model.eval()
    tokenizer = load_tokenizer(backbone_folder())

    @torch.no_grad()
    def run(pairs: Pairs) -> Logits:
        ids, types, mask = pad(encode_texts(tokenizer, pairs, MAX_TOKENS))
        with torch.autocast("cpu", torch.bfloat16):
            rows, tokens = model(*(torch.from_numpy(x) for x in (ids, types, mask)))
        peak = token_peak(tokens.float().numpy(), types, mask)
        return np.concatenate([rows.float().numpy(), peak[:, None]], 1).astype(np.float32)

    return lambda pairs: in_length_order(pairs, batch, run)


def onnx_scorer(folder: Path, batch: int = 24, threads: int = 2) -> Score:
    """Scorer of an exported folder (model.onnx and tokenizer.json)."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def run(pairs: Pairs) -> Logits:
        ids, types, mask = pad(encode_texts(tokenizer, pairs, MAX_TOKENS))
        feed = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
        support, contradiction, tokens = session.run(["support", "contradiction", "tokens"], feed)
        return np.stack([support, contradiction, token_peak(tokens, types, mask)], 1).astype(np.float32)

    return lambda pairs: in_length_order(pairs, batch, run)


def trial_scorer(folder: Path, batch: int = 24) -> Score:
    """Scorer of the trial: entailment log-odds plus its published offset 1.4; B must be the bare claim."""
    from safetensors.torch import load_file
    from transformers import BertConfig, BertModel

    state = {k: v.float() for k, v in load_file(str(folder / "model_fp16.safetensors")).items()}
    encoder = BertModel(BertConfig.from_pretrained(backbone_folder()))
    encoder.load_state_dict({k[2:]: v for k, v in state.items() if k.startswith("e.")}, strict=False)
    encoder.eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    @torch.no_grad()
    def run(pairs: Pairs) -> Logits:
        ids, types, mask = (torch.from_numpy(x) for x in pad(encode_texts(tokenizer, pairs, MAX_TOKENS)))
        hidden = encoder(input_ids=ids, token_type_ids=types, attention_mask=mask).last_hidden_state
        weight = mask[..., None].float()
        logits = (hidden * weight).sum(1) / weight.sum(1) @ state["h.weight"].T + state["h.bias"]
        odds = logits[:, 0] - torch.logsumexp(logits[:, 1:], -1) + 1.4
        return torch.stack([odds, logits[:, 2] - logits[:, 1], torch.zeros_like(odds)], -1).numpy()

    return lambda pairs: in_length_order(pairs, batch, run)


def containment(claim: str, passages: Sequence[str]) -> float:
    """Share of the claim's content terms that stand in the passages."""
    wanted = set(terms(claim))
    known = set(terms(" ".join(passages)))
    return len(wanted & known) / len(wanted) if wanted else 1.0
