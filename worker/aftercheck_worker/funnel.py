"""The funnel: of all traces, how many were scored, and where the others fell out (I3, U32)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aftercheck_schemas.vocabulary import IN_FLIGHT_STATES, OUTCOMES, TERMINAL_STATES
from aftercheck_worker.storage import totals


class Funnel(msgspec.Struct, frozen=True, kw_only=True):
    """Raw counts since the database was made.

    Attributes:
        traces: sampled + unsampled. dropped, rejected: lost before that, by reason.
        answers: answer spans found in sampled traces: finished plus in flight.
        states: answers by state. outcomes: evaluated answers by outcome, late ones included.
        not_assessable, failed: the same by reason.
        claims: claims with a verdict by status.
    """

    dropped: dict[str, int]
    rejected: dict[str, int]
    traces: int
    sampled: int
    unsampled: int
    answers: int
    states: dict[str, int]
    outcomes: dict[str, int]
    not_assessable: dict[str, int]
    failed: dict[str, int]
    claims: dict[str, int]
    hallucinated: int
    dead_letters: dict[str, int]

    def hints(self, *, waiting: int) -> list[str]:
        """Sentences that explain an empty or leaking funnel.

        Args:
            waiting: entries on the stream, and traces that are being assembled.
        """
        found: list[str] = []
        if not self.traces and not waiting:
            found.append("No trace has arrived: does the app call aftercheck.init, and is its REDIS_URL this one?")
        if not self.traces and waiting:
            found.append(
                "Traces wait, none was read yet: is an intake running (aftercheck worker, or aftercheck up)?"
            )
        if self.traces and not self.sampled:
            found.append("No trace was sampled: see aftercheck sampling list.")
        if self.sampled and not self.answers:
            found.append("Sampled traces held no answer span: aftercheck explain TRACE_ID says what was found.")
        flying = sum(self.states.get(state, 0) for state in IN_FLIGHT_STATES)
        if flying and flying == self.answers:
            found.append("Answers wait, none was checked yet: is a worker running?")
        if self.not_assessable.get("no_evidence_expected"):
            found.append("Answers without any passage cannot be checked: record them with aftercheck.record_context.")
        if self.not_assessable.get("no_content"):
            found.append("Content capture is off in the app: there is no text to check (TRACELOOP_TRACE_CONTENT).")
        return found


def build(rows: Iterable[totals.Total], in_flight: dict[str, int], *, app: str | None = None) -> Funnel:
    """Sum the totals of one tenant, of one app where given."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if app is None or row.name.app == app:
            by_key = found.setdefault(row.name.metric, {})
            by_key[row.name.key] = by_key.get(row.name.key, 0.0) + row.value

    def keyed(metric: str, order: Iterable[str] = ()) -> dict[str, int]:
        values = found.get(metric, {})
        names = [*order, *sorted(set(values) - set(order))]
        return {name: round(values[name]) for name in names if values.get(name)}

    sampled, unsampled = (round(sum(found.get(metric, {}).values())) for metric in (totals.SAMPLED, totals.UNSAMPLED))
    states = {**{k: v for k, v in in_flight.items() if v}, **keyed(totals.STATES, TERMINAL_STATES)}
    outcomes = keyed(totals.ANSWERS_RAW, OUTCOMES)
    for outcome, count in keyed(totals.LATE).items():
        outcomes[outcome] = outcomes.get(outcome, 0) + count
    return Funnel(
        dropped=keyed(totals.DROPPED),
        rejected=keyed(totals.REJECTED),
        traces=sampled + unsampled,
        sampled=sampled,
        unsampled=unsampled,
        answers=sum(states.values()),
        states=states,
        outcomes=outcomes,
        not_assessable=keyed(totals.NOT_ASSESSABLE),
        failed=keyed(totals.FAILED),
        claims=keyed(totals.CLAIMS, ("supported", "contradicted", "not_found", "unclear")),
        hallucinated=round(sum(found.get(totals.HALLUCINATED_RAW, {}).values())),
        dead_letters=keyed(totals.DEAD_LETTERS),
    )


def lines(funnel: Funnel) -> list[tuple[str, object, str]]:
    """Rows of the table: step, count, details."""
    return [
        ("lost before intake", sum(funnel.dropped.values()), _reasons(funnel.dropped)),
        ("refused by intake", sum(funnel.rejected.values()), _reasons(funnel.rejected)),
        ("traces read", funnel.traces, ""),
        ("- not sampled", funnel.unsampled, "kept 24 h, a thumbs-down still forces a check"),
        ("- sampled", funnel.sampled, ""),
        ("answers found", funnel.answers, ""),
        *((f"- {state}", count, _details(funnel, state)) for state, count in funnel.states.items()),
        ("claims with a verdict", sum(funnel.claims.values()), _reasons(funnel.claims)),
        ("hallucinated answers", funnel.hallucinated, "at least one claim contradicted or not found"),
        ("dead letters", sum(funnel.dead_letters.values()), _reasons(funnel.dead_letters)),
    ]


def _details(funnel: Funnel, state: str) -> str:
    if state == "scored":
        return _reasons({k: v for k, v in funnel.outcomes.items() if k not in ("abstained", "not_assessable")})
    if state == "not_assessable":
        return _reasons(funnel.not_assessable)
    return _reasons(funnel.failed) if state == "failed" else ""


def _reasons(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())
