"""Answers are cut into messages by number and by estimated work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import Passage
from aftercheck_worker.intake.reading import estimated_pairs
from aftercheck_worker.intake.writer import Ready, batches
from aftercheck_worker.testing import interaction

answers = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 50)), max_size=80)


@given(answers)
def test_each_answer_goes_once_and_no_message_is_too_big(found: list[tuple[int, int]]) -> None:
    ready = [Ready(number, priority, pairs) for number, (priority, pairs) in enumerate(found)]
    cut = batches(ready, most=32, pairs=100)

    assert sorted(number for _, ids in cut for number in ids) == list(range(len(ready)))
    for high, ids in cut:
        assert 1 <= len(ids) <= 32
        assert len(ids) == 1 or sum(ready[number].pairs for number in ids) <= 100
        assert all((ready[number].priority > 0) == high for number in ids)


@pytest.mark.parametrize(("answer", "passages", "expected"), [("a" * 250, 2, 6), ("", 0, 0), ("short", 1, 1)])
def test_pairs_are_claims_times_windows(answer: str, passages: int, expected: int) -> None:
    found = interaction(answer, *(Passage(source_id=str(n), text="p") for n in range(passages)))

    assert estimated_pairs(found) == expected
