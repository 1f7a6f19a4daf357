"""Labels stay harmless and few, whatever an app writes into them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_worker.exporter.labels import OTHER, AllowList, LabelSets, scrub

NAMES = ("app", "model")
anything = st.text(st.characters(codec=None), max_size=300)


@pytest.mark.req("S31")
@given(anything)
def test_scrubbed_text_can_be_encoded_and_holds_no_control_character(value: str) -> None:
    clean = scrub(value)

    clean.encode()
    assert len(clean) <= 128
    assert not any(ord(char) < 32 or char in "\u202e\u200b\x7f" for char in clean)


def test_ordinary_text_is_left_alone() -> None:
    assert scrub('żółć "quoted" \\ 答案') == 'żółć "quoted" \\ 答案'


@pytest.mark.req("S31")
def test_the_list_admits_the_heaviest_first_and_never_forgets() -> None:
    allowed = AllowList(2)
    allowed.admit({"small": 1, "big": 9, "middle": 5})
    allowed.admit({"late": 1000})

    assert [allowed.label(value) for value in ("big", "middle", "small", "late", "")] == [
        "big",
        "middle",
        OTHER,
        OTHER,
        "",
    ]


@pytest.mark.req("S31")
def test_a_hundred_thousand_random_values_do_not_grow_the_labels() -> None:
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201 - to repeat a failure
    rng = random.Random(seed)
    sets = LabelSets(50, 200, NAMES, ("model", "app"))
    tuples = [(str(rng.random()), str(rng.random())) for _ in range(100_000)]

    sets.admit((values, 1.0) for values in tuples)

    seen = {sets.labels(values) for values in tuples}
    assert len(seen) <= 200


def test_too_many_combinations_collapse_the_widest_label_only() -> None:
    sets = LabelSets(100, 50, NAMES, ("model", "app"))
    tuples = [(f"app{a}", f"model{m}") for a in range(10) for m in range(20)]

    sets.admit((values, 1.0) for values in tuples)

    assert sets.labels(("app3", "model7")) == ("app3", OTHER)
    assert sets.labels(("app3", "")) == ("app3", "")
