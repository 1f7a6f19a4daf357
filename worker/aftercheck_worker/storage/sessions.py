"""Reads answers with their place in a session, for the fatigue statistics (R30). Reading only, one tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow, class_row


class SessionAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluated production answer inside a session.

    Attributes:
        session: unique per app and environment.
        turn: 1-based. As recorded; where any turn of the session is unknown, the rank of its trace by time.
        call_index: 1-based index of the model call inside its trace.
        context_tokens: input tokens as the provider reported them, 0 when unknown.
        faithfulness: 0..1, None where nothing was measured.
        citation_precision: citations whose source entails the claim / citations with a finding, 0..1; None without.
        self_consistency: 1, or 0 for an answer that contradicts itself or the dialogue; None without claims.
    """

    app: str
    session: str
    turn: int
    call_index: int = 1
    context_tokens: int = 0
    faithfulness: float | None = None
    citation_precision: float | None = None
    self_consistency: float | None = None


_ANSWERS: Final = """
WITH recent AS (
  SELECT app, environment, session_id, trace_id, turn, call_index, context_tokens, outcome, faithfulness, details,
         coalesce(answered_at, finalised_at) AS at
  FROM evaluation
  WHERE finalised_at >= %(since)s AND finalised_at <= now() AND day >= %(since)s::date - 2
    AND run_id = 'online' AND origin = 'production' AND NOT late AND quality = 'standard'
    AND tenant = %(tenant)s AND (%(app)s = '' OR app = %(app)s)
  ORDER BY finalised_at DESC LIMIT %(limit)s
), begun AS (
  SELECT *, bool_and(turn > 0) OVER (PARTITION BY app, environment, session_id) AS known,
         min(at) OVER (PARTITION BY app, environment, session_id, trace_id) AS start
  FROM recent WHERE session_id <> ''
)
SELECT app, concat(environment, ' ', session_id) AS session,
       CASE WHEN known THEN turn
            ELSE dense_rank() OVER (PARTITION BY app, environment, session_id ORDER BY start, trace_id)
       END::int AS turn,
       call_index, context_tokens,
       CASE WHEN outcome IN ('grounded', 'ungrounded') THEN faithfulness END AS faithfulness,
       (SELECT avg(CASE WHEN coalesce((c->>'entails')::bool, false) THEN 1.0 ELSE 0.0 END)::float8
        FROM jsonb_array_elements(coalesce(details->'citations', '[]')) AS c
        WHERE c ? 'entails' OR NOT coalesce((c->>'exists')::bool, false)) AS citation_precision,
       CASE WHEN outcome IN ('grounded', 'ungrounded')
            THEN CASE WHEN coalesce(details->'labels', '[]') ? 'self_contradiction' THEN 0.0 ELSE 1.0 END
       END::float8 AS self_consistency
FROM begun ORDER BY app, session, turn, at
"""


def answers(
    connection: psycopg.Connection[TupleRow], tenant: str, since: datetime, *, app: str = "", limit: int = 50_000
) -> list[SessionAnswer]:
    """Read, of the newest answers, those that have a session, in session order.

    Args:
        connection: any; nothing is written.
        tenant: whose.
        since: finalised at or after this moment.
        app: only this one; "" is every app.
        limit: most answers to look at, with or without a session, so that the cost has a bound. The cut is by time,
            whatever the quality: it biases no slope.

    Raises:
        psycopg.Error: Postgres does not answer, or the statement took too long.
    """
    values = {"tenant": tenant, "since": since, "app": app, "limit": limit}
    with connection.cursor(row_factory=class_row(SessionAnswer)) as cursor:
        return cursor.execute(_ANSWERS.encode(), values).fetchall()
