"""The peer: sentence-transformers' `CrossEncoder.predict` in fp32, run by an interpreter that has it.

`PYTHON benchmarks/_cross_encoder.py THREADS < pairs.json` prints pairs per second. The network is the verifier's
backbone at its size (BERT, 6 layers of 384) with random weights: how fast a matrix is multiplied does not depend on
what stands in it. The tokenizer is the verifier's own.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROUNDS = 2


def main() -> None:
    """Read {tokenizer, pairs} from stdin; print the best of `ROUNDS` as pairs per second."""
    given: dict[str, Any] = json.load(sys.stdin)
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    cross: Any = importlib.import_module("sentence_transformers").CrossEncoder
    torch.set_num_threads(int(sys.argv[1]))
    config = transformers.BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        num_labels=1,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        transformers.BertForSequenceClassification(config).save_pretrained(folder)
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_file=given["tokenizer"], pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
            unk_token="[UNK]", mask_token="[MASK]",
        )  # fmt: skip
        tokenizer.save_pretrained(folder)
        model = cross(str(Path(folder)), max_length=320, device="cpu")
    pairs = [tuple(pair) for pair in given["pairs"]]
    model.predict(pairs[:32])
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.perf_counter()
        model.predict(pairs, show_progress_bar=False)
        best = min(best, time.perf_counter() - began)
    print(len(pairs) / best)


if __name__ == "__main__":
    main()
