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
from .fusion import CLAIM_ID, FIRST_WORD_ID
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


def token_peak(tokens: NDArray[Any], ids: NDArray[Any], types: NDArray[Any]) -> Logits:
    """Greatest mean of three neighbouring token logits of the claim, as `fusion` has it in the graph, (n)."""
    out = np.full(len(tokens), -20.0, np.float32)
    for i in range(len(tokens)):
        marks = np.flatnonzero((ids[i] == CLAIM_ID) & (types[i] == 1))
        words = (np.arange(ids.shape[1]) >= marks[0]) & (ids[i] >= FIRST_WORD_ID) if len(marks) else types[i] > 5
        kept, count = (np.convolve(x, np.ones(3), "same") for x in (tokens[i] * words, words.astype(np.float64)))
        if words.any():
            out[i] = (kept[words] / count[words]).max()
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
        peak = token_peak(tokens.float().numpy(), ids, types)
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
        return np.stack([support, contradiction, token_peak(tokens, ids, types)], 1).astype(np.float32)

    return lambda pairs: in_length_order(pairs, batch, run)


def signals_of(folder: Path, pairs: Pairs) -> NDArray[np.float64]:
    """The `signals` output of an exported folder for every pair, (n, 3)."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def run(part: Pairs) -> Logits:
        ids, types, mask = pad(encode_texts(tokenizer, part, MAX_TOKENS))
        feed = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}
        return np.array(session.run(["signals"], feed)[0], np.float32)

    return in_length_order(pairs, 24, run).astype(np.float64)


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
