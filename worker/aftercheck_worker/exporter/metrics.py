"""Every metric of the exporter, declared once: name, kind, help and labels (style habit 17).

`docs/reference/metrics.md` is generated from this file. Names keep Prometheus' rules: base units, `_total` for
counters, `_ratio` for 0..1. `faithfulness` is a summary (`_sum`, `_count`), so that a fleet's mean over any window
is rate(sum) / rate(count); it is weighted by 1 / sampling probability, and `faithfulness_raw` is its unweighted twin.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from aftercheck_worker.storage import totals

Kind = Literal["counter", "gauge", "summary"]

QUALITY: Final = ("app", "environment", "model", "prompt_version", "evaluator", "quality", "origin")
"""Labels of everything that an evaluator measured. `quality` is `smoke` for the lexical baseline: alerts select
`quality="standard"` and `origin="production"` (R13, R53)."""
TRAFFIC: Final = ("app", "environment", "origin")
WINDOW: Final = ("app", "environment", "evaluator", "quality")


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric as it is exported.

    Attributes:
        name: without the `aftercheck_` prefix and, for counters, without `_total`.
        stored: metric names in the `total` table; a summary has two: sum and count.
        key: label that carries the `key` column of the `total` table, "" when it has none.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    key: str = ""

    @property
    def full_name(self) -> str:
        """Name as a query writes it; for a summary the stem of `_sum` and `_count`."""
        return f"aftercheck_{self.name}{'_total' if self.kind == 'counter' else ''}"


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=name, kind="gauge", help=text, labels=labels)


FAITHFULNESS_RATIO: Final = _gauge(
    "faithfulness_ratio",
    "Mean faithfulness of production answers finalised in the last 5 minutes, weighted by 1/sampling probability."
    " Absent without answers; read it with aftercheck_window_evaluations.",
    *WINDOW,
)
HALLUCINATION_RATIO: Final = _gauge(
    "hallucination_ratio",
    "Share of hallucinated production answers finalised in the last 5 minutes, weighted. Absent without answers.",
    *WINDOW,
)
WINDOW_EVALUATIONS: Final = _gauge(
    "window_evaluations", "Raw number of answers behind the two 5-minute ratios.", *WINDOW
)
DESIGN_EFFECT: Final = _gauge(
    "faithfulness_design_effect",
    "How much wider session clusters and unequal weights make the variance of the mean faithfulness: at least 1,"
    " over production answers of the last 30 minutes.",
    *WINDOW,
)
RETRIEVAL_SAME: Final = _gauge(
    "retrieval_same_passages_ratio",
    "Share of different questions of the last 30 minutes that got the one most frequent set of passages (R28)."
    " Absent below 20 different questions.",
    "app",
    "environment",
)
FATIGUE_SLOPE: Final = _gauge(
    "fatigue_slope",
    "Change of a quality measure per turn, call or 1,000 context tokens inside sessions, over the first 4 turns of"
    " sessions with at least 5 (R30), last 7 days. A pattern, not a cause. Absent below 50 sessions.",
    "app",
    "measure",
    "against",
)
FATIGUE_UPPER: Final = _gauge(
    "fatigue_slope_upper",
    "Upper end of the slope's 99 % interval, clustered by session.",
    "app",
    "measure",
    "against",
)
FATIGUE_SESSIONS: Final = _gauge(
    "fatigue_sessions", "Sessions behind the slope; below 50 there is none.", "app", "measure", "against"
)
FATIGUE_MEAN: Final = _gauge(
    "fatigue_mean",
    "Mean of the measure at one step, differences between sessions taken out: a picture of the slope.",
    "app",
    "measure",
    "against",
    "step",
)
_JUDGED: Final = (
    " of judged production answers finalised in the last 5 minutes, weighted by 1/(sampling x judging probability)."
    " Absent without any; read it with aftercheck_judged_window_evaluations."
)
GROUNDEDNESS_RATIO: Final = _gauge(
    "groundedness_ratio",
    "Mean groundedness" + _JUDGED + " method judge: the judge's own; encoder: the verifier's of the same answers.",
    *WINDOW,
    "method",
)
CONTEXT_RELEVANCE_RATIO: Final = _gauge(
    "context_relevance_ratio", "Mean context relevance" + _JUDGED, *WINDOW, "method"
)
ANSWER_RELEVANCE_RATIO: Final = _gauge("answer_relevance_ratio", "Mean answer relevance" + _JUDGED, *WINDOW, "method")
JUDGED_WINDOW: Final = _gauge(
    "judged_window_evaluations",
    "Raw number of answers behind a judged 5-minute mean.",
    *WINDOW,
    "criterion",
    "method",
)
JUDGE_WAITING: Final = _gauge(
    "judge_waiting_answers", "Answers that wait for the judge. Absent when no answer ever went to one."
)
JUDGE_OLDEST: Final = _gauge(
    "judge_waiting_oldest_age_seconds", "Age of the oldest answer that waits for the judge. Absent without one."
)
CANARY_ACCURACY: Final = _gauge(
    "judge_canary_accuracy_ratio",
    "Share of the newest canaries (at most 200) that the judge got right. Absent below 50 canaries (S14).",
)
CANARY_LOWER: Final = _gauge("judge_canary_accuracy_lower", "Lower end of its 95 % Wilson interval.")
CANARY_UPPER: Final = _gauge("judge_canary_accuracy_upper", "Upper end of its 95 % Wilson interval.")
CANARIES: Final = _gauge("judge_canaries", "Canaries behind the accuracy, at most 200.")
EVALUATOR_INFO: Final = _gauge(
    "evaluator_info",
    "1 for every known evaluator version; version is the sha256 over all that can change a verdict.",
    "evaluator",
    "version",
    "quality",
)
IN_FLIGHT: Final = _gauge("in_flight", "Answers in the ledger without a terminal state.", "state")
OLDEST_IN_FLIGHT: Final = _gauge("in_flight_oldest_age_seconds", "Age of the oldest answer without a terminal state.")
LAST_FINALISED: Final = _gauge(
    "last_finalised_timestamp_seconds", "When an answer last reached a terminal state. Absent before the first."
)
DEAD_LETTERS_OPEN: Final = _gauge("dead_letters_open", "Dead letters that nobody has retried or dropped.")
QUEUE_DEPTH: Final = _gauge(
    "queue_depth",
    "Entries that wait: stream entries, traces due for reading, Celery messages (up to 32 answers each).",
    "queue",
)
QUEUE_OLDEST: Final = _gauge(
    "queue_oldest_age_seconds", "Age of the oldest waiting entry. Absent for an empty queue.", "queue"
)
COLD_HORIZON: Final = _gauge(
    "cold_horizon_seconds", "Age of the oldest unsampled trace that feedback can still force to a check."
)
EXPORTER_UP: Final = _gauge("exporter_up", "1 when both stores answered at the last refresh, else 0.")
DEPENDENCY_UP: Final = _gauge(
    "exporter_dependency_up", "1 when the store answered at the last refresh, else 0.", "dependency"
)
REFRESH_TIMESTAMP: Final = _gauge("exporter_refresh_timestamp_seconds", "When the shown values were read.")
REFRESH_SECONDS: Final = _gauge("exporter_refresh_seconds", "Duration of the last refresh.")

GAUGES: Final = (
    FAITHFULNESS_RATIO,
    HALLUCINATION_RATIO,
    WINDOW_EVALUATIONS,
    DESIGN_EFFECT,
    RETRIEVAL_SAME,
    FATIGUE_SLOPE,
    FATIGUE_UPPER,
    FATIGUE_SESSIONS,
    FATIGUE_MEAN,
    GROUNDEDNESS_RATIO,
    CONTEXT_RELEVANCE_RATIO,
    ANSWER_RELEVANCE_RATIO,
    JUDGED_WINDOW,
    JUDGE_WAITING,
    JUDGE_OLDEST,
    CANARY_ACCURACY,
    CANARY_LOWER,
    CANARY_UPPER,
    CANARIES,
    EVALUATOR_INFO,
    IN_FLIGHT,
    OLDEST_IN_FLIGHT,
    LAST_FINALISED,
    DEAD_LETTERS_OPEN,
    QUEUE_DEPTH,
    QUEUE_OLDEST,
    COLD_HORIZON,
    EXPORTER_UP,
    DEPENDENCY_UP,
    REFRESH_TIMESTAMP,
    REFRESH_SECONDS,
)


def _counter(name: str, text: str, labels: tuple[str, ...], stored: str, key: str = "") -> Metric:
    names = (*labels, key) if key else labels
    return Metric(name=name, kind="counter", help=text, labels=names, stored=(stored,), key=key)


def _summary(name: str, text: str, sums: str, counts: str, key: str = "") -> Metric:
    labels = (*QUALITY, key) if key else QUALITY
    return Metric(name=name, kind="summary", help=text, labels=labels, stored=(sums, counts), key=key)


def _triad(name: str, text: str, stored: tuple[str, str, str]) -> tuple[Metric, Metric]:
    """A judged criterion: sum and count, and the sum of squares, by method (R21)."""
    sums, counts, squares = stored
    weighted = " Judged answers, weighted by 1/(sampling x judging probability)."
    return (
        _summary(name, text + weighted, sums, counts, "method"),
        _counter(f"{name}_sumsq", f"Sum of squares of the same.{weighted}", QUALITY, squares, "method"),
    )


_WEIGHTED: Final = " Weighted by 1/sampling probability: estimates all traffic."

FROM_TOTALS: Final = (
    _summary(
        "faithfulness",
        "Faithfulness (supported / verifiable claims) of answers with a verifiable claim." + _WEIGHTED,
        totals.FAITHFULNESS_SUM,
        totals.FAITHFULNESS_COUNT,
    ),
    _counter(
        "faithfulness_sumsq",
        "Sum of squared faithfulness, for the standard deviation." + _WEIGHTED,
        QUALITY,
        totals.FAITHFULNESS_SUMSQ,
    ),
    _summary(
        "faithfulness_raw",
        "Faithfulness of the answers that were really evaluated, unweighted.",
        totals.FAITHFULNESS_RAW_SUM,
        totals.FAITHFULNESS_RAW_COUNT,
    ),
    _counter(
        "faithfulness_raw_sumsq", "Sum of squared faithfulness, unweighted.", QUALITY, totals.FAITHFULNESS_RAW_SUMSQ
    ),
    _counter("answers", "Evaluated answers by outcome." + _WEIGHTED, QUALITY, totals.ANSWERS, "outcome"),
    _counter("answers_raw", "Evaluated answers by outcome, unweighted.", QUALITY, totals.ANSWERS_RAW, "outcome"),
    _counter(
        "hallucinated_answers",
        "Answers with a claim that is contradicted or not found. Rate: over answers grounded + ungrounded."
        + _WEIGHTED,
        QUALITY,
        totals.HALLUCINATED,
    ),
    _counter("hallucinated_answers_raw", "The same answers, unweighted.", QUALITY, totals.HALLUCINATED_RAW),
    _counter(
        "critical_answers", "Answers with a critical unsupported claim (R54)." + _WEIGHTED, QUALITY, totals.CRITICAL
    ),
    _counter("critical_answers_raw", "The same answers, unweighted.", QUALITY, totals.CRITICAL_RAW),
    _counter("critical_claims", "Critical unsupported claims, unweighted.", QUALITY, totals.CRITICAL_CLAIMS),
    _counter("flagged_answers", "Answers flagged for a look." + _WEIGHTED, QUALITY, totals.FLAGGED),
    _counter("flagged_answers_raw", "The same answers, unweighted.", QUALITY, totals.FLAGGED_RAW),
    _counter("claims", "Claims with a verdict by status, unweighted.", QUALITY, totals.CLAIMS, "status"),
    _counter("claims_by_type", "Claims with a verdict by type, unweighted.", QUALITY, totals.CLAIMS_TYPE, "type"),
    _counter("actions", "Answers by proposed action, unweighted.", QUALITY, totals.ACTIONS, "action"),
    _counter(
        "retrievals", "Answers by what their retrieval gave, unweighted (R28).", QUALITY, totals.RETRIEVALS, "result"
    ),
    _counter(
        "canary_answers", "Canary answers, by whether the known verdict came.", QUALITY, totals.CANARY, "result"
    ),
    *_triad(
        "groundedness",
        "Supported / judged claims; method judge, or encoder for the verifier on the same answers.",
        totals.GROUNDEDNESS,
    ),
    *_triad("context_relevance", "Relevance of the retrieved passages by rank.", totals.CONTEXT_RELEVANCE),
    *_triad("answer_relevance", "Share of the question's parts that are answered.", totals.ANSWER_RELEVANCE),
    _counter(
        "judged_claims",
        "Claims that verifier and judge both decided. agreed and disagreed: the random audit sample, whose share is"
        " that of all traffic; band_agreed and band_disagreed: answers judged because they are uncertain.",
        QUALITY,
        totals.JUDGED,
        "result",
    ),
    _counter(
        "judge_answers",
        "Answers sent to the judge: judged, fallback (the verifier's word was final), late (judged too late).",
        QUALITY,
        totals.JUDGE_ANSWERS,
        "result",
    ),
    _counter(
        "judge_refused_claims",
        "Judged statuses that the cross-check or a deterministic check did not let pass (S13).",
        QUALITY,
        totals.JUDGE_REFUSED,
    ),
    _counter(
        "judge_void_quotes", "Quotes of the judge that stand in no source (S12).", QUALITY, totals.JUDGE_VOID_QUOTES
    ),
    _summary(
        "judge_repeat_disagreement",
        "Share of votes that differ from their claim's majority, per answer judged repeatedly.",
        totals.REPEATS_SUM,
        totals.REPEATS_COUNT,
    ),
    _counter("judge_calls", "Replies of the judge's endpoint, canaries included.", QUALITY, totals.JUDGE_CALLS),
    _counter("judge_tokens", "Tokens of those replies.", QUALITY, totals.JUDGE_TOKENS, "kind"),
    _counter(
        "judge_dollars",
        "Their price in US dollars at the configured prices; over aftercheck_finalised_answers it is the cost of a"
        " verified answer (R29).",
        QUALITY,
        totals.JUDGE_DOLLARS,
    ),
    _counter(
        "finalised_answers",
        "Evaluated answers by who had the last word, unweighted.",
        QUALITY,
        totals.FINALISED,
        "decided_by",
    ),
    _counter(
        "evaluator_failures",
        "Evaluators that failed beside a verdict; never a score.",
        QUALITY,
        totals.EVALUATOR_FAILURES,
        "reason",
    ),
    _counter(
        "late_answers",
        "Answers evaluated too late for alerts (AFTERCHECK_LATE_SECONDS); they are in no series above.",
        QUALITY,
        totals.LATE,
        "outcome",
    ),
    _summary(
        "late_faithfulness",
        "Faithfulness of late answers, unweighted.",
        totals.LATE_FAITHFULNESS_SUM,
        totals.LATE_FAITHFULNESS_COUNT,
    ),
    _counter("finished_answers", "Answers that reached a terminal state.", TRAFFIC, totals.STATES, "state"),
    _counter(
        "not_assessable_answers",
        "Answers that nobody can judge, by reason.",
        TRAFFIC,
        totals.NOT_ASSESSABLE,
        "reason",
    ),
    _counter("failed_answers", "Answers whose evaluation failed, by reason.", TRAFFIC, totals.FAILED, "reason"),
    _counter("dead_letters", "Entries and answers given up, by reason.", TRAFFIC, totals.DEAD_LETTERS, "reason"),
    _counter(
        "reconciled_answers", "Stuck answers that the reconciler sent again.", TRAFFIC, totals.RECONCILED, "state"
    ),
    _counter("traces_sampled", "Traces chosen for evaluation.", TRAFFIC, totals.SAMPLED),
    _counter("traces_unsampled", "Traces left out by the sampling rate.", TRAFFIC, totals.UNSAMPLED),
    _counter(
        "traces_dropped",
        "Traces lost before the intake, as the senders report them.",
        TRAFFIC,
        totals.DROPPED,
        "reason",
    ),
    _counter("entries_rejected", "Stream entries that the intake refused.", TRAFFIC, totals.REJECTED, "reason"),
    _counter("traces_read", "Sampled traces that were read, by what they held.", TRAFFIC, totals.TRACES, "result"),
    _counter("traces_forced", "Unsampled traces that feedback had evaluated.", TRAFFIC, totals.FORCED),
    _counter("traces_incomplete", "Traces read without some of their spans.", TRAFFIC, totals.INCOMPLETE),
    _counter("entries_received", "Stream entries that the intake took off.", TRAFFIC, totals.RECEIVED),
    _counter("entries", "The same entries, by what became of them.", TRAFFIC, totals.ENTRIES, "fate"),
    _counter("feedback", "Feedback of users, by what it led to.", TRAFFIC, totals.FEEDBACK, "result"),
    _counter(
        "cold_chunks_evicted", "Chunks of unsampled traces that left the cold store.", TRAFFIC, totals.COLD_EVICTED
    ),
    _counter("late_spans", "Spans that came after their trace was checked.", TRAFFIC, totals.LATE_SPANS),
    _counter(
        "duplicate_results", "Results not written because another worker was first.", TRAFFIC, totals.DUPLICATES
    ),
)

ALL: Final = (*FROM_TOTALS, *GAUGES)
