"""The evaluators that have written results: name, version, and everything the version is the hash of (R25)."""

from __future__ import annotations

from collections.abc import Mapping

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
