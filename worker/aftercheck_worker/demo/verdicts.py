"""What the store says about the demo's answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas.vocabulary import IN_FLIGHT_STATES


class ClaimVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One claim of an answer and what the evidence says about it."""

    text: str
    status: str
    confidence: float
    reason: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """State of one answer, and its evaluation where there is one."""

    trace_id: str
    state: str
    reason: str | None
    outcome: str | None
    faithfulness: float | None
    evaluator: str | None
    quality: str | None
    claims: tuple[ClaimVerdict, ...] = ()

    @property
    def finished(self) -> bool:
        """True when the state is terminal."""
        return self.state not in IN_FLIGHT_STATES


_ANSWERS: Final = """
SELECT l.trace_id, l.state, l.reason, e.outcome, e.faithfulness, e.evaluator, e.quality,
       l.day, l.evaluation_id, e.evaluator_version
FROM ledger l
LEFT JOIN evaluation e ON e.day = l.day AND e.evaluation_id = l.evaluation_id AND e.run_id = 'online'
WHERE l.trace_id = ANY(%s) ORDER BY l.evaluation_id
"""

_CLAIMS: Final = """
SELECT c.evaluation_id, c.text, v.status, v.confidence, v.reason
FROM claim c JOIN verdict v USING (day, evaluation_id, run_id, evaluator_version, claim_id)
WHERE c.evaluation_id = ANY(%s) AND c.run_id = 'online' ORDER BY c.evaluation_id, c.start
"""


def read(connection: psycopg.Connection[TupleRow], trace_ids: Sequence[str]) -> list[Answer]:
    """Read all answers of the traces, with their claims."""
    rows = connection.execute(_ANSWERS, (list(trace_ids),)).fetchall()
    claims: dict[int, list[ClaimVerdict]] = {}
    for number, text, status, confidence, reason in connection.execute(_CLAIMS, ([row[8] for row in rows],)):
        found = ClaimVerdict(text=text, status=status, confidence=confidence, reason=reason)
        claims.setdefault(int(number), []).append(found)
    return [
        Answer(
            trace_id=row[0],
            state=row[1],
            reason=row[2],
            outcome=row[3],
            faithfulness=row[4],
            evaluator=row[5],
            quality=row[6],
            claims=tuple(claims.get(int(row[8]), ())),
        )
        for row in rows
    ]
