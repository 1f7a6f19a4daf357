"""Batches: every row once, inside the budgets, with little padding."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aftercheck_worker.models.packing import fill, padded_ratio, plan


@given(st.lists(st.integers(1, 512), max_size=300), st.integers(64, 8192), st.integers(1, 64))
def test_plan(lengths: list[int], max_tokens: int, max_rows: int) -> None:
    batches = plan(lengths, max_tokens=max_tokens, max_rows=max_rows)

    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = max(lengths[i] for i in batch) * len(batch)
        assert len(batch) <= max_rows
        assert len(batch) == 1 or padded <= max_tokens
    assert padded_ratio(lengths, batches) <= 1.15 + 1e-9


def test_equal_rows_fill_the_budget() -> None:
    assert [len(batch) for batch in plan([128] * 80, max_tokens=4096, max_rows=64)] == [32, 32, 16]


def test_nothing_to_do() -> None:
    assert plan([]) == []
    assert padded_ratio([], []) == 1.0


@given(st.lists(st.integers(1, 512), max_size=300), st.integers(64, 8192))
def test_fill(lengths: list[int], max_tokens: int) -> None:
    batches = fill(lengths, max_tokens)

    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or sum(lengths[i] for i in batch) <= max_tokens for batch in batches)


def test_short_rows_fill_what_long_ones_left() -> None:
    assert fill([70, 60, 40, 30], 100) == [[0, 3], [1, 2]]
