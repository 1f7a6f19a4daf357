"""Token labels and batching, with the shipped tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest

from training.row import Row, read_rows, write_rows

pytest.importorskip("torch")
tokenizers = pytest.importorskip("tokenizers")

SHIPPED = Path(__file__).parents[2] / "worker/aftercheck_worker/models/weights/aftercheck-verifier-en/tokenizer.json"


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    out: list[Row] = []
    for pair in range(20):
        window = "The lab sold sensors. " * (1 + pair % 5)
        out.append(Row(window, "The lab sold sensors.", 1, -1, "made", pair=pair, spans=[]))
        out.append(
            Row(window, "The lab sold pumps.", 0, 1, "made", pair=pair, spans=[(13, 18)], question="What was sold?")
        )
    return out


def test_rows_survive_the_file(tmp_path: Path, rows: list[Row]) -> None:
    assert write_rows(tmp_path / "x.jsonl.gz", rows) == len(rows)
    assert list(read_rows(tmp_path / "x.jsonl.gz")) == rows


@pytest.mark.skipif(not SHIPPED.exists(), reason="no shipped tokenizer")
def test_labels_stand_on_the_changed_word_and_twins_stay_together(rows: list[Row]) -> None:
    from training.batches import epoch_order, make_batch
    from training.encode import encode_rows

    data = encode_rows(tokenizers.Tokenizer.from_file(str(SHIPPED)), rows, 64)
    part = slice(int(data.offsets[1]), int(data.offsets[2]))
    assert [int(i) for i in data.tokens[part]].count(1) == 1
    assert set(data.tokens[: data.offsets[1]].tolist()) == {-1, 0}
    order = epoch_order(data, seed=1, epoch=0, budget=256)
    assert order == epoch_order(data, seed=1, epoch=0, budget=256) != epoch_order(data, seed=1, epoch=1, budget=256)
    assert sorted(i for batch in order for i in batch) == list(range(len(rows)))
    for batch in order:
        made = make_batch(data, batch)
        twins = cast("list[tuple[int, int]]", made.twins.tolist())
        assert len(twins) * 2 == len(batch)
        assert made.ids.numel() <= 256
        support = cast("list[int]", made.support.tolist())
        assert all(support[a] == 1 and support[b] == 0 for a, b in twins)
    chosen = data.select(np.array([3, 1]))
    assert len(chosen) == 2
    assert chosen.offsets[-1] == len(chosen.ids)
