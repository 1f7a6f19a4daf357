"""The evaluators that have written results: name, version, and everything the version is the hash of (R25)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.storage import rows, scrub


def remember(
    connection: psycopg.Connection[TupleRow], *, name: str, version: str, spec: Mapping[str, object]
) -> None:
    """Keep an evaluator; a known version stays as it is."""
    connection.execute(
        "INSERT INTO evaluator (version, name, spec) VALUES (%s, %s, %s) ON CONFLICT (version) DO NOTHING",
        (version, scrub.text(name), rows.jsonb(scrub.encode(dict(spec)))),
    )


def spec(connection: psycopg.Connection[TupleRow], version: str) -> dict[str, object]:
    """Return what a version is the hash of; empty for one that nobody has written down."""
    row = connection.execute("SELECT spec FROM evaluator WHERE version = %s", (version,)).fetchone()
    return msgspec.convert(row[0], dict[str, object]) if row is not None else {}
