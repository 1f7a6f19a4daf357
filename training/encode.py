"""Rows -> flat arrays of token ids, ready for batching."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from .format import CLAIM, MARKERS, segment_b
from .row import Row

UNKNOWN = -1


def load_tokenizer(folder: Path) -> Tokenizer:
    """The backbone's tokenizer; the markers become single tokens (ids 3 to 6 of the vocabulary)."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens(list(MARKERS))
    tokenizer.no_padding()
    return tokenizer


@dataclass(frozen=True, slots=True)
class Encoded:
    """n rows. ids, tokens: flat (sum of lengths); offsets: (n + 1); the others: (n).

    tokens: 1 unsupported, 0 supported, -1 unknown or outside the claim. start_b: first token of segment B.
    """

    ids: NDArray[np.uint16]
    tokens: NDArray[np.int8]
    offsets: NDArray[np.int64]
    start_b: NDArray[np.int32]
    support: NDArray[np.int8]
    contradiction: NDArray[np.int8]
    pair: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.support)

    def select(self, rows: NDArray[np.int64]) -> Encoded:
        """The named rows, in that order."""
        lengths = np.diff(self.offsets)[rows]
        flat = np.concatenate([np.arange(self.offsets[r], self.offsets[r + 1]) for r in rows])
        return Encoded(
            ids=self.ids[flat],
            tokens=self.tokens[flat],
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            start_b=self.start_b[rows],
            support=self.support[rows],
            contradiction=self.contradiction[rows],
            pair=self.pair[rows],
        )

    def save(self, path: Path) -> None:
        """One npz file."""
        np.savez(path, **{name: getattr(self, name) for name in self.__dataclass_fields__})

    @classmethod
    def load(cls, path: Path) -> Encoded:
        """Read what `save` wrote."""
        with np.load(path) as arrays:
            return cls(**{name: arrays[name] for name in cls.__dataclass_fields__})


def token_labels(encoding: Encoding, row: Row, text_b: str) -> NDArray[np.int8]:
    """Labels of one row's tokens; see `Encoded.tokens`."""
    out = np.full(len(encoding.ids), UNKNOWN, np.int8)
    spans = [] if row.support else row.spans
    if spans is None:
        return out
    start = text_b.rindex(CLAIM) + len(CLAIM) + 1
    for i, (kind, (low, high)) in enumerate(zip(encoding.type_ids, encoding.offsets, strict=True)):
        if kind == 1 and low >= start and high > low:
            out[i] = any(low - start < b and high - start > a for a, b in spans)
    return out


def _batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    source = iter(rows)
    while batch := list(islice(source, size)):
        yield batch


def encode_texts(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]], max_tokens: int) -> list[Encoding]:
    """Encode (A, B) pairs; a pair that is too long loses tokens at the end of its longer segment, in practice A."""
    tokenizer.enable_truncation(max_tokens, strategy="longest_first")
    return tokenizer.encode_batch(list(pairs))


def encode_rows(tokenizer: Tokenizer, rows: Iterable[Row], max_tokens: int) -> Encoded:
    """Encode all rows of a phase."""
    ids: list[NDArray[np.uint16]] = []
    tokens: list[NDArray[np.int8]] = []
    starts: list[int] = []
    kept: list[Row] = []
    for batch in _batches(rows, 2000):
        texts = [segment_b(row.claim, row.question, row.previous) for row in batch]
        encodings = encode_texts(tokenizer, [(r.window, b) for r, b in zip(batch, texts, strict=True)], max_tokens)
        for row, text, encoding in zip(batch, texts, encodings, strict=True):
            ids.append(np.array(encoding.ids, np.uint16))
            tokens.append(token_labels(encoding, row, text))
            starts.append(encoding.type_ids.index(1))
        kept += batch
    return Encoded(
        ids=np.concatenate(ids),
        tokens=np.concatenate(tokens),
        offsets=np.concatenate([[0], np.cumsum([len(x) for x in ids])]).astype(np.int64),
        start_b=np.array(starts, np.int32),
        support=np.array([row.support for row in kept], np.int8),
        contradiction=np.array([row.contradiction for row in kept], np.int8),
        pair=np.array([row.pair for row in kept], np.int32),
    )
