"""Running totals: the counters behind every rate and mean. Added in the transaction that writes the result.

The list of metrics is closed; the exporter reads the names from here. `weighted` metrics are sums of
1 / sampling probability, so that they estimate all traffic; every one has a raw twin (R53).
Evaluations of answers older than `late_seconds` count under `LATE*` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from aftercheck_worker.storage import scrub

FAITHFULNESS_SUM: Final = "faithfulness_sum"
"""Weighted sum of faithfulness over answers with a verifiable claim; abstained, no_claims and failed are outside."""
FAITHFULNESS_COUNT: Final = "faithfulness_count"
"""Sum of the weights of the same answers."""
FAITHFULNESS_SUMSQ: Final = "faithfulness_sumsq"
"""Weighted sum of the squares: weight x faithfulness ** 2."""
FAITHFULNESS_RAW_SUM: Final = "faithfulness_raw_sum"
FAITHFULNESS_RAW_COUNT: Final = "faithfulness_raw_count"
FAITHFULNESS_RAW_SUMSQ: Final = "faithfulness_raw_sumsq"

ANSWERS: Final = "answers"
"""Evaluated answers, weighted; key = outcome."""
ANSWERS_RAW: Final = "answers_raw"
HALLUCINATED: Final = "hallucinated"
"""Answers with a contradicted or not_found claim, weighted; over `answers` grounded + ungrounded it is the rate."""
HALLUCINATED_RAW: Final = "hallucinated_raw"
CRITICAL: Final = "critical"
"""Answers with at least one critical claim, weighted."""
CRITICAL_RAW: Final = "critical_raw"
CRITICAL_CLAIMS: Final = "critical_claims"
"""Critical claims, raw."""
FLAGGED: Final = "flagged"
"""Flagged answers, weighted."""
FLAGGED_RAW: Final = "flagged_raw"

CLAIMS: Final = "claims"
"""Claims with a verdict, raw; key = status."""
CLAIMS_TYPE: Final = "claims_type"
"""Claims with a verdict, raw; key = type."""
ACTIONS: Final = "actions"
"""Answers by proposed action (allow, warn, block), raw."""
EVALUATOR_FAILURES: Final = "evaluator_failures"
"""Failures beside a verdict, raw; key = reason."""

RETRIEVALS: Final = "retrievals"
"""Answers by what their retrieval gave, raw; key = ok, empty (no passage), identical (several, all the same)."""
CANARY: Final = "canary"
"""Canary answers with a known verdict, raw; key = passed, failed. Written by whoever sends them."""
JUDGED: Final = "judged"
"""Claims that verifier and judge both decided, raw; key = agreed, disagreed for answers of the random audit sample,
band_agreed, band_disagreed for answers that were judged only because they are uncertain."""
JUDGE_ANSWERS: Final = "judge_answers"
"""Answers sent to a judge, raw; key = judged, fallback, or late (judged after they were final)."""
JUDGE_REFUSED: Final = "judge_refused"
"""Claims whose judged status the cross-check or a deterministic check stopped, raw."""
JUDGE_VOID_QUOTES: Final = "judge_void_quotes"
"""Quotes of the judge that stand in no source, raw."""
JUDGE_CALLS: Final = "judge_calls"
"""Replies of the judge's endpoint, raw; canaries and answers that failed later included."""
JUDGE_TOKENS: Final = "judge_tokens"
"""Tokens of those replies, raw; key = prompt, completion."""
JUDGE_DOLLARS: Final = "judge_dollars"
"""Their price at the configured prices, raw."""
REPEATS_SUM: Final = "judge_repeats_sum"
"""Sum over answers that were judged repeatedly of the share of votes that differ from their claim's majority."""
REPEATS_COUNT: Final = "judge_repeats_count"
FINALISED: Final = "finalised"
"""Finished evaluations by who had the last word, raw; key = verifier, judge, verifier_fallback."""

GROUNDEDNESS_SUM: Final = "groundedness_sum"
"""Judged answers, weighted by 1 / (sampling x judging probability); key = method: judge, or encoder for what the
verifier said of the same answers."""
GROUNDEDNESS_COUNT: Final = "groundedness_count"
GROUNDEDNESS_SUMSQ: Final = "groundedness_sumsq"
CONTEXT_RELEVANCE_SUM: Final = "context_relevance_sum"
CONTEXT_RELEVANCE_COUNT: Final = "context_relevance_count"
CONTEXT_RELEVANCE_SUMSQ: Final = "context_relevance_sumsq"
ANSWER_RELEVANCE_SUM: Final = "answer_relevance_sum"
ANSWER_RELEVANCE_COUNT: Final = "answer_relevance_count"
ANSWER_RELEVANCE_SUMSQ: Final = "answer_relevance_sumsq"

LATE: Final = "late"
"""Answers evaluated too late for any alert, raw; key = outcome. They are in no metric above."""
LATE_FAITHFULNESS_SUM: Final = "late_faithfulness_sum"
LATE_FAITHFULNESS_COUNT: Final = "late_faithfulness_count"

STATES: Final = "states"
"""Answers that reached a terminal state, raw; key = state."""
NOT_ASSESSABLE: Final = "not_assessable"
"""Answers without a verdict, raw; key = reason."""
FAILED: Final = "failed"
"""Answers whose evaluation failed, raw; key = reason."""
DEAD_LETTERS: Final = "dead_letters"
"""Dead letters, raw; key = reason."""
RECONCILED: Final = "reconciled"
"""Answers sent again by the reconciler, raw; key = pending, checking or judging."""

SAMPLED: Final = "sampled"
"""Traces chosen by the intake, raw."""
UNSAMPLED: Final = "unsampled"
"""Traces left out by the intake, raw."""
DROPPED: Final = "dropped"
"""Traces that the producer or the admission dropped, raw; key = reason."""
REJECTED: Final = "rejected"
"""Stream entries that the intake refused, raw; key = reason."""
RECEIVED: Final = "received"
"""Stream entries that the intake took off, raw. Equal to the sum over `entries`."""
ENTRIES: Final = "entries"
"""The same by what became of them; key = held (for their trace), unsampled, duplicate, rejected, feedback."""
TRACES: Final = "traces"
"""Traces that were read, raw; key = answered, no_answer, rejected, empty, or repeated (all answers were known)."""
FORCED: Final = "forced"
"""Unsampled traces that feedback had evaluated, raw."""
INCOMPLETE: Final = "incomplete"
"""Traces that were read although something of them is missing, raw."""
FEEDBACK: Final = "feedback"
"""Users' feedback, raw; key = forced, waiting, evaluated, evicted, unknown for a thumbs-down, noted for others."""
COLD_EVICTED: Final = "cold_evicted"
"""Chunks of unsampled traces that left the cold store unread, raw."""
LATE_SPANS: Final = "late_spans"
"""Spans that came after their trace was checked, raw."""
DUPLICATES: Final = "duplicates"
"""Results that were not written because another worker had written one, raw."""

INTAKE_STAMP: Final = "intake_stamp"
"""Not a count: stamp of the last set of increments that the intake moved here (`storage.increments`)."""

METRICS: Final[frozenset[str]] = frozenset(
    value for name, value in list(globals().items()) if name.isupper() and isinstance(value, str)
)

SEEDED: Final = frozenset(name for name in METRICS if name.endswith(("_sum", "_sumsq")))
"""Sums that are written even when 0. Where every answer of an app is invented from the first one on, a sum that is
absent instead of 0 would leave the mean without its spread, and the worst app without its page."""

GROUNDEDNESS: Final = (GROUNDEDNESS_SUM, GROUNDEDNESS_COUNT, GROUNDEDNESS_SUMSQ)
CONTEXT_RELEVANCE: Final = (CONTEXT_RELEVANCE_SUM, CONTEXT_RELEVANCE_COUNT, CONTEXT_RELEVANCE_SUMSQ)
ANSWER_RELEVANCE: Final = (ANSWER_RELEVANCE_SUM, ANSWER_RELEVANCE_COUNT, ANSWER_RELEVANCE_SUMSQ)


class TotalKey(NamedTuple):
    """One counter. Empty labels mean "does not apply"; `key` is the status, type, outcome or reason of the metric."""

    metric: str
    app: str = ""
    environment: str = ""
    model: str = ""
    prompt_version: str = ""
    evaluator: str = ""
    origin: str = "production"
    key: str = ""


class Total(NamedTuple):
    """A counter with its value."""

    tenant: str
    name: TotalKey
    value: float


_ADD: Final = """
INSERT INTO total (metric, tenant, app, environment, model, prompt_version, evaluator, origin, key, value)
SELECT metric, %s, app, environment, model, prompt_version, evaluator, origin, key, value
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[],
            %s::float8[])
  AS new (metric, app, environment, model, prompt_version, evaluator, origin, key, value)
ON CONFLICT (metric, tenant, app, environment, model, prompt_version, evaluator, origin, key)
DO UPDATE SET value = total.value + excluded.value
"""


def add(connection: psycopg.Connection[TupleRow], tenant: str, increments: Mapping[TotalKey, float]) -> None:
    """Add to the counters. Call it last in a transaction: the rows stay locked until the commit.

    Rows are locked in sorted order, so two transactions cannot wait for one another.

    Raises:
        ValueError: a metric that is not in `METRICS`.
        psycopg.errors.CheckViolation: a sum would become NaN or infinite.
    """
    cleaned: dict[TotalKey, float] = {}
    for name, value in increments.items():
        if name.metric not in METRICS:
            raise ValueError(f"unknown metric {name.metric!r}")
        if value or name.metric in SEEDED:
            fit = TotalKey(*map(scrub.text, name))
            cleaned[fit] = cleaned.get(fit, 0.0) + value
    if not cleaned:
        return
    rows = sorted(cleaned.items())
    columns = [list(column) for column in zip(*(name for name, _ in rows), strict=True)]
    connection.execute(_ADD, (scrub.text(tenant), *columns, [float(value) for _, value in rows]))


def read(connection: psycopg.Connection[TupleRow], tenant: str | None = None) -> list[Total]:
    """Read all counters, of one tenant or of all."""
    rows = connection.execute(
        "SELECT tenant, metric, app, environment, model, prompt_version, evaluator, origin, key, value FROM total"
        " WHERE %(tenant)s::text IS NULL OR tenant = %(tenant)s ORDER BY 1, 2, 3, 4, 5, 6, 7, 8, 9",
        {"tenant": tenant},
    ).fetchall()
    return [Total(str(row[0]), TotalKey(*map(str, row[1:9])), float(row[9])) for row in rows]
