"""Equal values are written alike; everything else stays as it was."""

from __future__ import annotations

import pytest

from aftercheck_worker.text.restatement import restated


@pytest.mark.parametrize(
    ("claim", "premise", "expected"),
    [
        ("It opened on 1985-08-18.", "It opened on August 18, 1985, at last.", "It opened on August 18, 1985."),
        ("A refund takes 432 hours.", "Refunds take 18 days.", "A refund takes 18 days."),
        ("It holds 2500 books.", "It holds 2,500 books.", "It holds 2,500 books."),
        ("It costs €2500.", "It costs 2,500 euros.", "It costs 2,500 euros."),
        ("It holds twelve books.", "It holds 12 books.", "It holds 12 books."),
        ("Der Weg ist 18000 m lang.", "Der Weg ist 18 km lang.", "Der Weg ist 18 km lang."),
        ("From 2 km to 4000 m.", "Between 2000 m and 4 km.", "From 2000 m to 4 km."),
    ],
)
def test_equal_values_take_the_writing_of_the_premise(claim: str, premise: str, expected: str) -> None:
    assert restated(claim, premise) == expected


@pytest.mark.parametrize(
    ("claim", "premise"),
    [
        ("It opened on 1985-08-19.", "It opened on August 18, 1985."),
        ("It opened on 18 August.", "It opened on August 18, 1985."),  # less is said: not the same date
        ("A refund takes 433 hours.", "Refunds take 18 days."),
        ("It has about 2500 books.", "It has 2,500 books."),
        ("It has 2500 books.", "It has about 2,500 books."),
        ("It holds 2500 books.", "It holds 2,500 pages."),
        ("It costs 2500.", "It costs 2,500 euros."),
        ("It is the 3rd hall.", "There are three halls."),
        ("It grew by 1.2 million.", "It grew by 1,234,567."),  # rounding is for the checks to allow
        ("Nothing to see.", "It costs 2,500 euros."),
        ("It costs 2,500 euros.", ""),
    ],
)
def test_nothing_else_is_touched(claim: str, premise: str) -> None:
    assert restated(claim, premise) == claim
