"""Pair scorer on onnxruntime: the default back end. The only file that imports onnxruntime and tokenizers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from aftercheck_worker.models.base import ModelInfo, Pair, PairScore
from aftercheck_worker.models.packing import DEFAULT_MAX_TOKENS, plan
from aftercheck_worker.models.registry import fingerprint, load_config
from aftercheck_worker.text.segments import CLAIM, MAX_CLAIM_WORDS, clean, segment_b

if TYPE_CHECKING:
    from aftercheck_worker.models.registry import ModelConfig

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
OUTPUTS = ("support", "contradiction", "tokens")


class _Encoding(Protocol):
    ids: list[int]
    type_ids: list[int]
    offsets: list[tuple[int, int]]
    sequence_ids: list[int | None]


class _Session(Protocol):
    def run(self, names: Sequence[str], inputs: dict[str, Ints]) -> list[Floats]: ...


class OnnxPairScorer:
    """Scores (premise, claim) pairs with a cross-encoder in ONNX.

    Inputs `input_ids`, `attention_mask`, `token_type_ids`, int64 (batch, tokens). Outputs, float32 logits:
    `support` (batch,), `contradiction` (batch,) given "not supported", `tokens` (batch, tokens) "this token of the
    claim is unsupported".

    Args:
        folder: a model folder, see `registry`.
        threads: threads of one inference; None takes all cores of the process.
        max_tokens: token budget of one batch.
        spin: threads spin between the operators of one inference; faster alone, dearer beside busy neighbours.

    Raises:
        ModelRefused: see `registry.load_config`.
    """

    def __init__(
        self, folder: Path, *, threads: int | None = None, max_tokens: int = DEFAULT_MAX_TOKENS, spin: bool = False
    ) -> None:
        self.config: ModelConfig = load_config(folder)
        self._tokenizer = _tokenizer(folder / "tokenizer.json", self.config.max_tokens)
        self._claim_id = cast("int", self._tokenizer.token_to_id(CLAIM))
        self._session = _session(folder / "model.onnx", threads or len(os.sched_getaffinity(0)), spin)
        self._max_tokens = max_tokens

    @property
    def info(self) -> ModelInfo:
        """Identity of the weights."""
        return ModelInfo(
            name=self.config.name,
            revision=self.config.revision,
            sha256=fingerprint(self.config),
            parameters={"max_tokens": str(self.config.max_tokens)},
        )

    def encode(self, pairs: Sequence[Pair]) -> list[_Encoding]:
        """Tokenise pairs; only the premise is ever cut."""
        texts = [(pair.premise, segment_b(pair.claim, pair.question, pair.previous)) for pair in pairs]
        return cast("list[_Encoding]", self._tokenizer.encode_batch(texts))

    def score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        """Return one score per pair, in order; equal pairs are computed once."""
        distinct = list(dict.fromkeys(_key(pair) for pair in pairs))
        unique = {key: pair for pair in pairs for key in (_key(pair),)}
        found = dict(zip(distinct, self._score([unique[key] for key in distinct]), strict=True))
        return [found[_key(pair)] for pair in pairs]

    def _score(self, pairs: Sequence[Pair]) -> list[PairScore]:
        encodings = self.encode(pairs)
        scores: dict[int, PairScore] = {}
        for batch in plan([len(encoding.ids) for encoding in encodings], max_tokens=self._max_tokens):
            rows = [encodings[i] for i in batch]
            support, contradiction, tokens = self._session.run(OUTPUTS, _inputs(rows))
            for position, index in enumerate(batch):
                spans = self._spans(pairs[index], rows[position], tokens[position])
                scores[index] = _pair_score(float(support[position]), float(contradiction[position]), spans)
        return [scores[i] for i in range(len(pairs))]

    def _spans(self, pair: Pair, row: _Encoding, logits: Floats) -> tuple[tuple[int, int, float], ...]:
        """Unsupported spans of the claim; none when its white space was collapsed, since offsets would be off."""
        if clean(pair.claim) != pair.claim or len(pair.claim.split()) > MAX_CLAIM_WORDS:
            return ()
        marker = max(i for i, token in enumerate(row.ids) if token == self._claim_id)
        return _claim_spans(row, logits, marker, row.offsets[marker][1] + 1)


def _key(pair: Pair) -> tuple[str, str, str, str]:
    return pair.premise, pair.claim, pair.question, pair.previous


def _tokenizer(path: Path, max_tokens: int) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    cast("Any", tokenizer).enable_truncation(max_tokens, strategy="only_first")
    return tokenizer


def _session(path: Path, threads: int, spin: bool) -> _Session:
    options = cast("Any", onnxruntime).SessionOptions()  # the extension module has no types
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Idle threads must not spin: a worker shares its cores with Postgres and the intake.
    options.add_session_config_entry("session.intra_op.allow_spinning", "1" if spin else "0")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(str(path), sess_options=options, providers=["CPUExecutionProvider"])
    return cast("_Session", session)


def _inputs(rows: Sequence[_Encoding]) -> dict[str, Ints]:
    width = max(len(row.ids) for row in rows)
    shape = len(rows), width
    ids, mask, types = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for position, row in enumerate(rows):
        length = len(row.ids)
        ids[position, :length] = row.ids
        mask[position, :length] = 1
        types[position, :length] = row.type_ids
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}


def _sigmoid(logit: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(logit, -30, 30))))


def _pair_score(support: float, contradiction: float, spans: tuple[tuple[int, int, float], ...]) -> PairScore:
    entailment = _sigmoid(support)
    conflict = (1 - entailment) * _sigmoid(contradiction)
    return PairScore(
        entailment=entailment, contradiction=conflict, neutral=max(0.0, 1 - entailment - conflict), spans=spans
    )


def _claim_spans(row: _Encoding, logits: Floats, marker: int, claim_start: int) -> tuple[tuple[int, int, float], ...]:
    """Unsupported ranges of the claim: runs of tokens above one half, with the highest score of each run.

    Offsets of the tokenizer count from the start of segment B; `claim_start` is where the claim stands in it.
    """
    spans: list[tuple[int, int, float]] = []
    for position in range(marker + 1, len(row.ids)):
        start, end = (offset - claim_start for offset in row.offsets[position])
        score = _sigmoid(float(logits[position]))
        if row.sequence_ids[position] != 1 or score <= 0.5:
            continue
        if spans and start - spans[-1][1] <= 1:
            spans[-1] = (spans[-1][0], end, max(spans[-1][2], score))
        else:
            spans.append((start, end, score))
    return tuple(spans)
