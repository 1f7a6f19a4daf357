"""What an incident calls changed, and which window a link means."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from aftercheck_worker.api.ui.changes import Comparison, compare, difference
from aftercheck_worker.api.ui.incidents import window_of
from aftercheck_worker.storage.incident import Change

NOW = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
HALF = timedelta(minutes=30)


def change(dimension: str, value: str, now: tuple[int, int], before: tuple[int, int]) -> Change:
    return Change(
        dimension=dimension,
        value=value,
        bad=now[0],
        judged=now[1],
        faithfulness=None,
        bad_before=before[0],
        judged_before=before[1],
        faithfulness_before=None,
    )


def signs(found: Comparison) -> dict[str, str]:
    return {one.change.value: one.sign for group in found.groups for one in group.values}


def test_the_difference_has_newcombes_interval() -> None:
    # Newcombe (1998), table II, example (a): 56/70 - 48/80, method 10.
    found = difference(56, 70, 48, 80, z=1.959964)
    assert found.value == pytest.approx(0.2)
    assert found.low == pytest.approx(0.0524, abs=5e-5)
    assert found.high == pytest.approx(0.3339, abs=5e-5)
    assert difference(0, 0, 1, 2, z=2).value is None


@pytest.mark.req("U30")
def test_a_new_prompt_that_invents_is_the_suspect() -> None:
    found = compare(
        [
            change("all", "", (19, 106), (4, 105)),
            change("model", "m", (19, 106), (4, 105)),
            change("prompt version", "v7", (16, 45), (0, 0)),
            change("prompt version", "v6", (3, 61), (4, 105)),
            change("environment", "", (1, 1), (0, 0)),
        ]
    )
    assert [(one.change.value, one.new) for one in found.suspects] == [("v7", True)]
    assert signs(found) == {"m": "worse", "v7": "worse", "v6": "", "": ""}
    assert found.whole is not None
    assert found.whole.sign == "worse"


def test_a_value_that_took_all_traffic_is_the_suspect_and_nothing_is_one_without_a_window_before() -> None:
    rows = [change("all", "", (40, 80), (4, 80)), change("model", "new", (40, 80), (0, 0))]
    assert [one.change.value for one in compare([*rows, change("model", "old", (0, 0), (4, 80))]).suspects] == ["new"]
    alone = compare([change("all", "", (9, 9), (0, 0)), change("app", "a", (9, 9), (0, 0))])
    assert not alone.suspects
    assert not alone.groups[0].values[0].new
    assert compare([]).whole is None


def test_chance_rarely_looks_like_a_change() -> None:
    seed = 20261201
    print("seed", seed)  # noqa: T201
    dice, false = random.Random(seed), 0
    for _ in range(300):
        rows = [change("prompt version", f"v{n}", (hits(dice, 40), 40), (hits(dice, 40), 40)) for n in range(20)]
        whole = change(
            "all",
            "",
            (sum(one.bad for one in rows), 800),
            (sum(one.bad_before for one in rows), 800),
        )
        false += bool(compare([whole, *rows]).suspects)
    assert false <= 15  # 5 % of pages


def hits(dice: random.Random, count: int) -> int:
    return sum(dice.random() < 0.1 for _ in range(count))


@pytest.mark.req("U30")
def test_a_link_opened_late_shows_what_the_alert_saw() -> None:
    at = NOW - timedelta(hours=3)
    found = window_of(start="", end="", at=str(int(at.timestamp())), window="30m", now=NOW)
    assert (found.start, found.end, found.before) == (at - HALF, at + HALF, at - 3 * HALF)
    fresh = window_of(start="", end="", at=NOW.isoformat(), window="30m", now=NOW)
    assert (fresh.start, fresh.end) == (NOW - HALF, NOW + timedelta(seconds=5))


@pytest.mark.parametrize(
    ("start", "end", "window", "length"),
    [
        ("", "", "2h", timedelta(hours=2)),
        ("", "", "x", HALF),
        ("", "", "999999999d", timedelta(days=14)),
        ("2026-12-01T02:00", "2026-12-01T02:20", "", timedelta(minutes=20)),
        ("2026-12-01T02:00", "2026-12-01T01:00", "", HALF),
        ("nan", "9e99", "-5m", HALF),
        ("1999-01-01", "", "", timedelta(days=14)),
    ],
)
def test_windows(start: str, end: str, window: str, length: timedelta) -> None:
    found = window_of(start=start, end=end, at="", window=window, now=NOW)
    assert found.end - found.start == length
    assert found.end <= NOW + timedelta(seconds=5)
