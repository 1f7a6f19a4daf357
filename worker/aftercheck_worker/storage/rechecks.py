"""Answers already given, to be judged again by another evaluator (R54); their online verdict and totals stay."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import Evaluation, Interaction
from aftercheck_worker.storage import results, scrub


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that has an online verdict and whose text is still there."""

    evaluation_id: int
    outcome: str
    faithfulness: float | None
    interaction: Interaction


_FIND: Final = """
SELECT e.evaluation_id, e.outcome, e.faithfulness, i.body
FROM evaluation AS e JOIN interaction AS i USING (day, evaluation_id)
WHERE e.tenant = %(tenant)s AND e.run_id = 'online' AND e.finalised_at >= %(since)s AND e.day >= %(since)s::date - 2
  AND e.evaluation_id > %(after)s
  AND (%(app)s = '' OR e.app = %(app)s) AND (%(model)s = '' OR e.model = %(model)s)
  AND (%(retriever)s = '' OR e.retriever_version = %(retriever)s)
ORDER BY e.evaluation_id LIMIT %(limit)s
"""


def find(
    connection: psycopg.Connection[TupleRow],
    tenant: str,
    since: datetime,
    *,
    app: str = "",
    model: str = "",
    retriever: str = "",
    after: int = 0,
    limit: int = 32,
) -> list[Given]:
    """Next answers by id, above `after`. Empty filters match everything."""
    values = {"tenant": tenant, "since": since, "app": app, "model": model, "retriever": retriever}
    found = connection.execute(_FIND, {**values, "after": after, "limit": limit}).fetchall()
    return [
        Given(
            evaluation_id=row[0],
            outcome=row[1],
            faithfulness=row[2],
            interaction=msgspec.convert(row[3], Interaction),
        )
        for row in found
    ]


_KEEP: Final = """
INSERT INTO evaluation (day, evaluation_id, run_id, evaluator_version, tenant, trace_id, span_id, app, environment,
  model, prompt_version, retriever_version, evaluator, quality, origin, weight, session_id, turn, call_index,
  context_tokens, outcome, reason, faithfulness, faithfulness_upper, supported_probability, hallucinated, critical,
  flagged, risk, risk_v2, action, claims, verifiable, complete, answered_at)
SELECT day, evaluation_id, %(run)s, %(version)s, tenant, trace_id, span_id, app, environment, model, prompt_version,
  retriever_version, %(evaluator)s, %(quality)s, 'replay', weight, session_id, turn, call_index, context_tokens,
  %(outcome)s, %(reason)s, %(faithfulness)s, %(upper)s, %(probability)s, %(hallucinated)s, %(critical)s, %(flagged)s,
  %(risk)s, %(risk_v2)s, %(action)s, %(claims)s, %(verifiable)s, complete, answered_at
FROM evaluation WHERE run_id = 'online' AND evaluation_id = %(id)s LIMIT 1
ON CONFLICT DO NOTHING RETURNING day
"""


def keep(connection: psycopg.Connection[TupleRow], run: str, found: Sequence[tuple[Given, Evaluation]]) -> int:
    """Write the new evaluations with claims and evidence under a run id, with origin replay; the caller commits.

    Returns:
        How many are new.
    """
    written: list[results.Keyed] = []
    for given, one in found:
        values = {
            "id": given.evaluation_id,
            "run": run,
            "version": one.evaluator_version,
            "evaluator": one.evaluator,
            "quality": one.quality,
            "outcome": one.outcome,
            "reason": None if one.reason is None else scrub.text(one.reason),
            "faithfulness": one.faithfulness,
            "upper": one.faithfulness_upper,
            "probability": one.supported_probability,
            "hallucinated": one.hallucinated,
            "critical": one.critical,
            "flagged": one.flagged,
            "risk": one.risk,
            "risk_v2": one.risk_v2,
            "action": one.action,
            "claims": len(one.claims),
            "verifiable": sum(claim.verifiable for claim in one.claims),
        }
        row = connection.execute(_KEEP, values).fetchone()
        if row is not None:
            written.append(results.Keyed((row[0], given.evaluation_id, run, one.evaluator_version), one))
    results.keep_claims(connection, written)
    return len(written)
