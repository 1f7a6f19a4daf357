"""Units of records: a line in words for the verifier, a span that shows the value where it stands."""

from __future__ import annotations

import pytest

from aftercheck_worker.text.passages import units

RECORD = (
    '{"name": "Blue Door", "hours": {"Monday": "9:0-17:30"}, "attributes": {"OutdoorSeating": true, "Music": null},'
    ' "stars": 4.00, "note": "two\\nlines \\"q\\" \\u00e9", "sizes": [1, 2], "rows": [{"good_for": "lunch"}]}'
)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("name: Blue Door", "Blue Door"),
        ("hours Monday: 9:00-17:30", "9:0-17:30"),
        ("attributes Outdoor Seating: True", "true"),
        ("attributes Music: null", "null"),
        ("stars: 4.0", "4.0"),
        ("note: two", 'two\\nlines \\"q\\" \\u00e9'),
        ("sizes: 1, 2", "[1, 2]"),
        ("rows good for: lunch", "lunch"),
    ],
)
def test_a_leaf_is_a_line_in_words_and_a_span_of_its_value(line: str, shown: str) -> None:
    found = {unit.text: RECORD[unit.start : unit.end] for unit in units(RECORD)}
    assert found[line] == shown


def test_a_python_literal_is_a_record_too() -> None:
    text = "{'a': True, 'b': None}"
    assert [(unit.text, text[unit.start : unit.end]) for unit in units(text)] == [
        ("a: True", "True"),
        ("b: null", "None"),
    ]


def test_a_value_that_is_spelled_otherwise_shows_its_key() -> None:
    text = '{"count": 1e5}'
    assert [text[unit.start : unit.end] for unit in units(text)] == ["count"]
