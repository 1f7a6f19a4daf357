"""Users' feedback: one row per user, answer and kind; the newest word counts. It may come before its trace."""

from __future__ import annotations

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.storage import rows, scrub


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """One user's word on an answer (R6).

    Attributes:
        span_id: the answer, "" for the whole trace. user_hash: "" when unknown.
        kind: `thumb` or `score`. value: -1 down, 1 up, or a score on a scale of the app's own.
        at: nanoseconds since the epoch, 0 when unknown.
    """

    trace_id: str
    span_id: str = ""
    user_hash: str = ""
    kind: str = "thumb"
    value: float
    comment: str | None = None
    app: str = ""
    at: int = 0


_PUT = """
INSERT INTO feedback (tenant, trace_id, span_id, user_hash, kind, value, comment, app, created_at)
SELECT new.* FROM (
  VALUES (%s, %s, %s, %s, %s, %s::float8, %s, %s, coalesce(%s::timestamptz, now()))
) AS new (tenant, trace_id, span_id, user_hash, kind, value, comment, app, created_at)
WHERE NOT EXISTS (SELECT FROM tombstone AS t WHERE t.tenant = new.tenant AND t.trace_id = new.trace_id)
ON CONFLICT (tenant, trace_id, span_id, user_hash, kind) DO UPDATE
SET value = excluded.value, comment = excluded.comment, app = excluded.app, created_at = excluded.created_at
WHERE feedback.created_at < excluded.created_at
RETURNING 1
"""


def put(connection: psycopg.Connection[TupleRow], tenant: str, word: Feedback) -> bool:
    """Keep a word; False when the same or a newer one of this user is there, or the trace was erased. Idempotent.

    Args:
        connection: inside a transaction; nothing is committed.
        tenant: of the stream or token.
        word: the feedback.
    """
    texts = [scrub.text(part) for part in (tenant, word.trace_id, word.span_id, word.user_hash, word.kind)]
    comment = None if word.comment is None else scrub.text(word.comment)
    values = (*texts, word.value, comment, scrub.text(word.app), rows.moment(word.at))
    return connection.execute(_PUT, values).fetchone() is not None
