"""Nanoseconds of a span and `timestamptz` of a table."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from aftercheck_worker.storage import rows


@pytest.mark.req("F24")
@pytest.mark.parametrize("impossible", [0, -1, 10**21, 10**30])
def test_impossible_moments_are_unknown(impossible: int) -> None:
    assert rows.moment(impossible) is None


def test_the_last_moment_of_the_calendar() -> None:
    assert rows.moment(253_402_300_798 * 10**9) == datetime(9999, 12, 31, 23, 59, 58, tzinfo=UTC)


def test_there_and_back_to_the_microsecond() -> None:
    at = 1_790_000_000_123_456_000
    assert rows.nanoseconds(rows.moment(at)) == at
    assert rows.nanoseconds(None) == 0


def test_only_bytes_are_sent_as_they_are() -> None:
    with pytest.raises(TypeError, match="bytes"):
        rows._as_it_is({"a": 1})
