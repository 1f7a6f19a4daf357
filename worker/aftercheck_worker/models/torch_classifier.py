"""Sequence and token classifiers on torch: the only file that imports torch and transformers (extra `[gpu]`).

Rows are packed into one flat row without padding. Attention sees where each sequence ends through
`torch.nn.attention.varlen` on CUDA, and through one call per sequence elsewhere; both are registered with
transformers' `AttentionInterface`. Architectures whose head is not known here are padded, by token budget.
Only safetensors are read, remote code is never run, nothing is downloaded.
"""

from __future__ import annotations

import contextvars
import importlib
import logging
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.models.packing import fill, plan

logger = logging.getLogger(__name__)

Task = Literal["pair", "token"]
Floats = NDArray[np.float32]
ATTENTION: Final = "aftercheck_varlen"
CUDA_TOKENS: Final = 32_768
"""Token budget of a batch on a GPU: at base size about 30 ms of work, far above the cost of launching it."""
CPU_TOKENS: Final = 4_096


class Row(msgspec.Struct, frozen=True):
    """One tokenised input: ids and segment ids, of one length."""

    ids: list[int]
    types: list[int]


class _Packed(msgspec.Struct, frozen=True):
    """Where the sequences of a flat row end: 0 and the running sum of their lengths, as a tensor and as numbers."""

    ends: Any
    bounds: tuple[int, ...]
    longest: int


_packed: contextvars.ContextVar[_Packed] = contextvars.ContextVar("packed")


class TorchClassifier:
    """A classifier of transformers, from a folder.

    Args:
        folder: config.json, model.safetensors.
        task: `pair` for one vector of logits per row, `token` for one per token.
        device: `cuda`, `cpu`, ...; None takes CUDA where it is.
        max_tokens: token budget of a batch; None takes what suits the device.
        padded: never pack, for comparison.

    Raises:
        ConfigurationError: torch or transformers is not installed.
    """

    def __init__(
        self,
        folder: Path,
        task: Task,
        *,
        device: str | None = None,
        max_tokens: int | None = None,
        padded: bool = False,
    ) -> None:
        self._torch, transformers = _libraries()
        self._device = device or ("cuda" if self._torch.cuda.is_available() else "cpu")
        on_gpu = self._device.startswith("cuda")
        self._max_tokens = max_tokens or (CUDA_TOKENS if on_gpu else CPU_TOKENS)
        kind = "AutoModelForSequenceClassification" if task == "pair" else "AutoModelForTokenClassification"
        model = getattr(transformers, kind).from_pretrained(
            str(folder),
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            dtype=self._torch.bfloat16 if on_gpu else self._torch.float32,
        )
        self._model: Any = model.to(self._device).eval()
        self._head = None if padded else _head(self._model, task)
        self._task = task
        self.labels: tuple[str, ...] = tuple(str(name) for _, name in sorted(self._model.config.id2label.items()))
        positions = int(getattr(self._model.config, "max_position_embeddings", 512))
        self.max_length = positions - (2 if "roberta" in self._model.config.model_type else 0)
        if self._head is not None:
            _register(self._torch, transformers)
            self._model.set_attn_implementation(ATTENTION)

    @property
    def packs(self) -> bool:
        """True when no padding is computed."""
        return self._head is not None

    def logits(self, rows: Sequence[Row]) -> list[Floats]:
        """Return the logits of each row, in order: (labels,) for pairs, (tokens, labels) for tokens.

        Raises:
            torch.OutOfMemoryError: one row alone does not fit.
        """
        lengths = [len(row.ids) for row in rows]
        batches = fill(lengths, self._max_tokens) if self.packs else plan(lengths, max_tokens=self._max_tokens)
        found: dict[int, Floats] = {}
        with self._torch.inference_mode():
            for batch in batches:
                found |= self._halving(rows, batch)
        return [found[place] for place in range(len(rows))]

    def _halving(self, rows: Sequence[Row], batch: Sequence[int]) -> dict[int, Floats]:
        """Run a batch; one that does not fit into memory is run as two halves."""
        try:
            run = self._flat if self.packs else self._square
            return dict(zip(batch, run([rows[place] for place in batch]), strict=True))
        except self._torch.OutOfMemoryError:
            if len(batch) == 1:
                raise
        self._torch.cuda.empty_cache()
        logger.warning("Out of memory: a batch of %d rows is halved", len(batch), extra={"action": "batch_halved"})
        middle = len(batch) // 2
        return self._halving(rows, batch[:middle]) | self._halving(rows, batch[middle:])

    def _flat(self, rows: Sequence[Row]) -> list[Floats]:
        lengths = [len(row.ids) for row in rows]
        bounds = (0, *np.cumsum(lengths).tolist())
        ends = self._torch.tensor(bounds, dtype=self._torch.int32, device=self._device)
        inputs = {
            "input_ids": [token for row in rows for token in row.ids],
            "position_ids": [place for length in lengths for place in range(length)],
            "token_type_ids": [kind for row in rows for kind in row.types],
        }
        tensors = {name: self._tensor([values]) for name, values in inputs.items()}
        reset = _packed.set(_Packed(ends, bounds, max(lengths)))
        try:
            hidden = self._encode(tensors)[0]
        finally:
            _packed.reset(reset)
        assert self._head is not None  # noqa: S101 - `packs`
        out = self._head(hidden, bounds)
        if self._task == "pair":
            return list(_numbers(out))
        return [_numbers(out[start:end]) for start, end in pairwise(bounds)]

    def _encode(self, tensors: dict[str, Any]) -> Any:
        """Hidden states of a flat row; inputs that the architecture does not know are left out."""
        config = self._model.config
        if int(getattr(config, "type_vocab_size", 0)) < 2:
            tensors.pop("token_type_ids")
        if "roberta" in config.model_type:  # its positions begin behind the padding index
            tensors["position_ids"] = tensors["position_ids"] + config.pad_token_id + 1
        return self._model.base_model(**tensors).last_hidden_state

    def _square(self, rows: Sequence[Row]) -> list[Floats]:
        width = max(len(row.ids) for row in rows)
        padding = int(self._model.config.pad_token_id or 0)
        inputs = {
            "input_ids": self._tensor([row.ids + [padding] * (width - len(row.ids)) for row in rows]),
            "attention_mask": self._tensor([[1] * len(r.ids) + [0] * (width - len(r.ids)) for r in rows]),
        }
        if int(getattr(self._model.config, "type_vocab_size", 0)) > 1:
            inputs["token_type_ids"] = self._tensor([row.types + [0] * (width - len(row.types)) for row in rows])
        out = self._model(**inputs).logits
        if self._task == "pair":
            return list(_numbers(out))
        return [_numbers(out[place, : len(row.ids)]) for place, row in enumerate(rows)]

    def _tensor(self, values: Sequence[Sequence[int]]) -> Any:
        return self._torch.tensor(values, dtype=self._torch.long, device=self._device)


def _libraries() -> tuple[Any, Any]:
    try:
        return importlib.import_module("torch"), importlib.import_module("transformers")
    except ImportError as error:
        raise ConfigurationError(
            "This model needs torch and transformers", why=str(error), fix="pip install 'aftercheck[gpu]'"
        ) from None


def _numbers(tensor: Any) -> Floats:
    found: Floats = tensor.float().cpu().numpy()
    return found


def _head(model: Any, task: Task) -> Callable[[Any, Sequence[int]], Any] | None:
    """From hidden states of a flat row, (tokens, width), and the bounds of its sequences to logits.

    None for architectures that are not known: those are padded.
    """
    kind = str(model.config.model_type)
    if kind == "modernbert":
        if task == "token":
            return lambda hidden, _: model.classifier(model.head(hidden))
        mean = model.config.classifier_pooling == "mean"
        return lambda hidden, bounds: model.classifier(model.head(_pooled(hidden, bounds, mean=mean)))
    if kind not in ("bert", "roberta", "xlm-roberta"):
        return None
    if task == "token":
        return lambda hidden, _: model.classifier(hidden)
    if kind == "bert":
        return lambda hidden, bounds: model.classifier(model.bert.pooler(_pooled(hidden, bounds)[:, None]))
    return lambda hidden, bounds: model.classifier(_pooled(hidden, bounds)[:, None])


def _pooled(hidden: Any, bounds: Sequence[int], *, mean: bool = False) -> Any:
    """One vector per sequence, (sequences, width): its first token, or the mean of all."""
    if not mean:
        return hidden[list(bounds[:-1])]
    torch: Any = importlib.import_module("torch")
    return torch.stack([hidden[start:end].mean(0) for start, end in pairwise(bounds)])


def _register(torch: Any, transformers: Any) -> None:
    """Make the attention known; no mask is built for it, since no sequence sees another one."""
    masks: Any = importlib.import_module("transformers.masking_utils")

    def attention(
        module: Any, query: Any, key: Any, value: Any, _mask: Any, scaling: float | None = None, **options: Any
    ) -> tuple[Any, None]:
        del module
        packed = _packed.get()
        side = int(options.get("sliding_window") or 0) - 1  # transformers counts the token itself
        run = _on_cuda if query.is_cuda else _one_by_one
        return run(torch, query, key, value, packed, scaling, side)[None], None

    def no_mask(*_args: Any, **_options: Any) -> None:
        return None

    transformers.AttentionInterface.register(ATTENTION, attention)
    masks.AttentionMaskInterface.register(ATTENTION, no_mask)


def _on_cuda(torch: Any, query: Any, key: Any, value: Any, packed: _Packed, scale: float | None, side: int) -> Any:
    """(1, heads, tokens, width) each -> (tokens, heads, width)."""
    varlen: Any = importlib.import_module("torch.nn.attention.varlen")
    del torch
    q, k, v = (states[0].transpose(0, 1).contiguous() for states in (query, key, value))
    return varlen.varlen_attn(
        q, k, v, packed.ends, packed.ends, packed.longest, packed.longest, scale=scale, window_size=(side, side)
    )


def _one_by_one(torch: Any, query: Any, key: Any, value: Any, packed: _Packed, scale: float | None, side: int) -> Any:
    """The reference: every sequence by itself, with the window as a mask."""
    parts: list[Any] = []
    for start, end in zip(packed.bounds, packed.bounds[1:], strict=False):
        window = None
        if side >= 0:
            places = torch.arange(end - start, device=query.device)
            window = (places[:, None] - places[None, :]).abs() <= side
        q, k, v = (states[:, :, start:end] for states in (query, key, value))
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=window, scale=scale)
        parts.append(found[0].transpose(0, 1))
    return torch.cat(parts)
