"""Log lines are one JSON object each."""

from __future__ import annotations

import json
import logging

from aftercheck_worker.logs import JsonFormatter


def test_a_record_is_one_line_with_its_extra_fields() -> None:
    record = logging.LogRecord("a.b", logging.WARNING, "f", 1, "two\nlines %s", ("x",), None)
    record.action = "retry"
    record.odd = object

    line = JsonFormatter().format(record)

    assert "\n" not in line
    found = json.loads(line)
    assert (found["level"], found["logger"], found["message"], found["action"]) == (
        "warning",
        "a.b",
        "two\nlines x",
        "retry",
    )


def test_a_traceback_is_a_field() -> None:
    try:
        raise ValueError("boom")
    except ValueError as error:
        record = logging.LogRecord("a", logging.ERROR, "f", 1, "m", (), (type(error), error, error.__traceback__))

    assert "boom" in json.loads(JsonFormatter().format(record))["error"]
