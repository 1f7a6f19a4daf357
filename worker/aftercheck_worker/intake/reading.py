"""From a leased trace to the answers in it: ready or not, sampled or not, decoded, assembled, extracted."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Literal

import msgspec

from aftercheck_schemas import Chunk, Interaction, Trace
from aftercheck_schemas.vocabulary import DeadLetterReason, Origin
from aftercheck_worker.intake.buffer import MAX_LEASES, Leased, Settled
from aftercheck_worker.intake.counters import counter
from aftercheck_worker.intake.gate import Rejected, inflate, read_chunk
from aftercheck_worker.intake.rates import Rates
from aftercheck_worker.intake.readiness import Patience, Wait, readiness, seen
from aftercheck_worker.intake.record import DIGEST_BYTES, Record, unpack
from aftercheck_worker.stages.assembly import assemble
from aftercheck_worker.stages.extraction import extract
from aftercheck_worker.stages.sampling import Decision
from aftercheck_worker.storage import scrub, totals
from aftercheck_worker.storage.ledger import NewAnswer

logger = logging.getLogger(__name__)

MAX_INFLATED_BYTES: Final = 64 * 1024 * 1024
"""JSON bytes of one trace; chunks beyond are dead letters (`too_large`)."""
NO_DECISION: Final = "s 1.0 0 0"
"""Decision text of a trace that became dead letters before anything was decided."""
CLAIM_CHARS: Final = 100
WINDOW_CHARS: Final = 1000

Outcome = Literal["answered", "no_answer", "rejected", "empty"]
Extract = Callable[[Trace], Sequence[Interaction]]


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """A stream entry that becomes a dead letter. `known`: it was written and counted before."""

    entry_id: str
    reason: DeadLetterReason
    detail: str
    fields: dict[bytes, bytes]
    app: str = ""
    trace_id: str = ""
    known: bool = False


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What was read from one leased trace.

    Attributes:
        action: `store` the answers, keep it `cold`, or `wait` until `until` (server seconds).
        app: name of the app. decision: text kept for late chunks.
        digests: of all chunks. fresh_spans: spans in chunks that are new since the trace was read before.
        outcome: of the trace, when nothing of it was read before.
        incomplete: verdicts carry `complete=false`.
        forced: kept only because feedback asked for it.
    """

    trace: Leased
    action: Literal["store", "cold", "wait"]
    until: float = 0.0
    app: str = ""
    decision: str = ""
    answers: tuple[NewAnswer, ...] = ()
    letters: tuple[Letter, ...] = ()
    digests: bytes = b""
    fresh_spans: int = 0
    outcome: Outcome = "answered"
    incomplete: bool = False
    forced: bool = False


class Reader:
    """Reads leased traces of one tenant. Holds no state but the rates."""

    def __init__(
        self, tenant: str, rates: Rates, patience: Patience, *, limit: int, extract: Extract = extract
    ) -> None:
        """Create.

        Args:
            tenant: owner of everything read.
            rates: sampling rates.
            patience: waiting times.
            limit: largest JSON document of a chunk in bytes.
            extract: finds the answers of a trace.
        """
        self._tenant, self._rates, self._patience, self._limit = tenant, rates, patience, limit
        self._extract = extract

    def read(self, leased: Leased, now: float) -> Reading:
        """Read one trace at `now`, server seconds. Never raises: what cannot be read becomes dead letters."""
        records, torn = _unpacked(leased)
        if not records:
            outcome: Outcome = "rejected" if torn else "empty"
            text = leased.decision or NO_DECISION
            return Reading(trace=leased, action="store", decision=text, outcome=outcome, letters=torn)
        reading = self._read(leased, records, now)
        if torn and reading.action == "store":
            return msgspec.structs.replace(reading, letters=(*reading.letters, *torn))
        return reading

    def _read(self, leased: Leased, records: Sequence[Record], now: float) -> Reading:
        if leased.leases >= MAX_LEASES:
            detail = f"{leased.leases} processes ended while they read this trace"
            return self._refused(leased, records, "poison", detail)
        facts = seen(record.header for record in records)
        state = readiness(facts, first=leased.first, last=leased.last, now=now, patience=self._patience)
        if isinstance(state, Wait) and not leased.forced:
            return Reading(trace=leased, action="wait", until=state.until)
        whole = len(records) == len(leased.stored) and not leased.cut
        complete = not isinstance(state, Wait) and state.complete and whole
        try:
            return self._decided(leased, records, complete)
        except Exception as error:
            logger.exception("A trace could not be read", extra={"action": "trace_unreadable"})
            return self._refused(leased, records, "poison", f"{type(error).__name__} while the trace was read")

    def refused(self, reading: Reading, reason: DeadLetterReason, detail: str) -> Reading:
        """Turn a reading that Postgres refuses into dead letters of its entries."""
        return self._refused(reading.trace, _unpacked(reading.trace)[0], reason, detail)

    def _decided(self, leased: Leased, records: Sequence[Record], complete: bool) -> Reading:
        app = next((r.header.app for r in records if r.header.root), records[0].header.app)
        session = next((r.header.session_id for r in records if r.header.session_id), "")
        origin = records[0].header.origin
        decision, text, forced = self._decision(leased, app, session, origin)
        if not decision.keep:
            return Reading(trace=leased, action="cold", app=app, decision="u", digests=_digests(records))
        chunks, letters, fresh_spans = self._chunks(leased, records)
        trace = assemble(
            leased.trace_id,
            app,
            chunks,
            environment=next((r.header.environment for r in records if r.header.environment), ""),
            session_id=session,
            origin="forced" if forced else origin,
            complete=complete and not letters,
            dropped=max(record.header.dropped for record in records),
        )
        answers = tuple(self._answer(found, decision) for found in self._extract(trace))
        return Reading(
            trace=leased,
            action="store",
            app=app,
            decision=text,
            answers=answers,
            letters=tuple(letters),
            digests=_digests(records),
            fresh_spans=fresh_spans,
            outcome=_outcome(trace, answers, letters),
            incomplete=not trace.complete,
            forced=forced,
        )

    def _decision(self, leased: Leased, app: str, session: str, origin: Origin) -> tuple[Decision, str, bool]:
        """Return the decision, its text for late chunks, and whether only feedback keeps the trace.

        The decision is taken once: a trace that is read again keeps it.
        """
        if leased.decision.startswith("s"):
            _, rate, version, only = leased.decision.split(" ")
            kept = Decision(keep=True, weight=1 / float(rate), rate=float(rate), version=int(version))
            return kept, leased.decision, only == "1"
        decision = self._rates.decide(app, leased.trace_id, session, origin)
        forced = leased.forced and not decision.keep
        if forced:
            decision = Decision(keep=True, version=decision.version)
        return decision, f"s {decision.rate!r} {decision.version} {int(forced)}", forced

    def _chunks(self, leased: Leased, records: Sequence[Record]) -> tuple[list[Chunk], list[Letter], int]:
        chunks: list[Chunk] = []
        letters: list[Letter] = []
        fresh_spans, left = 0, MAX_INFLATED_BYTES
        for record in records:
            if not record.payload:
                continue
            try:
                raw = inflate(record.payload, min(self._limit, left))
                left -= len(raw)
                chunk = read_chunk(raw, leased.trace_id)
            except Rejected as refusal:
                letters.append(_letter(leased, record, refusal.reason, refusal.detail))
                continue
            chunks.append(chunk)
            if record.digest not in leased.counted:
                fresh_spans += len(chunk.spans)
        return chunks, letters, fresh_spans

    def _answer(self, found: Interaction, decision: Decision) -> NewAnswer:
        return NewAnswer(
            tenant=self._tenant,
            trace_id=found.trace_id,
            span_id=found.span_id,
            app=found.app,
            body=scrub.encode(found),
            origin=found.origin,
            priority=int(found.origin in ("forced", "check")),
            weight=decision.weight,
            rate_version=decision.version,
            pairs=estimated_pairs(found),
            answered_at=found.answered_at,
            state="not_assessable" if found.not_assessable else "pending",
            reason=found.not_assessable,
            environment=found.environment,
            model=found.model,
            prompt_version=found.versions.prompt,
        )

    def _refused(self, leased: Leased, records: Sequence[Record], reason: DeadLetterReason, detail: str) -> Reading:
        return Reading(
            trace=leased,
            action="store",
            app=records[0].header.app if records else "",
            decision=leased.decision or NO_DECISION,
            letters=tuple(_letter(leased, record, reason, detail) for record in records),
            digests=_digests(records),
            outcome="rejected",
            incomplete=True,
        )


def _outcome(trace: Trace, answers: Sequence[NewAnswer], letters: Sequence[Letter]) -> Outcome:
    if answers:
        return "answered"
    if letters:
        return "rejected"
    return "no_answer" if trace.spans or trace.logs else "empty"


def settled(reading: Reading, *, new: bool, known: bool) -> Settled:
    """Say what becomes of a trace after the commit, and what is counted.

    Args:
        reading: as stored.
        new: at least one answer is new in the ledger, or a pending one was replaced.
        known: its answers were in the ledger before its first chunk came.
    """
    leased, app = reading.trace, reading.app
    counts: Counter[str] = Counter()
    for letter in reading.letters:
        if letter.known:
            continue
        counts[counter(totals.REJECTED, app, letter.reason)] += 1
    if leased.decision.startswith("s"):
        if not new and reading.fresh_spans:
            counts[counter(totals.LATE_SPANS, app)] += reading.fresh_spans
    elif reading.action == "cold":
        counts[counter(totals.UNSAMPLED, app)] += 1
    elif known and not new:
        counts[counter(totals.TRACES, app, "repeated")] += 1
    else:
        counts[counter(totals.FORCED if reading.forced else totals.SAMPLED, app)] += 1
        counts[counter(totals.TRACES, app, reading.outcome)] += 1
        if reading.incomplete:
            counts[counter(totals.INCOMPLETE, app)] += 1
    return Settled(
        trace=leased,
        action="cold" if reading.action == "cold" else "done",
        decision=reading.decision,
        counted=reading.digests,
        counts=tuple(counts.items()),
    )


def estimated_pairs(found: Interaction) -> int:
    """Estimate claims x passage windows of an answer: a claim per 100 characters, a window per 1,000."""
    claims = sum(1 + len(text) // CLAIM_CHARS for text in (found.answer, *found.alternatives))
    return claims * sum(1 + len(passage.text) // WINDOW_CHARS for passage in found.passages)


def _unpacked(leased: Leased) -> tuple[list[Record], tuple[Letter, ...]]:
    """Read the stored chunks, oldest first. One that cannot be read (another release wrote it) is a dead letter."""
    records: list[Record] = []
    torn: list[Letter] = []
    for stored in leased.stored:
        try:
            records.append(unpack(stored))
        except (ValueError, msgspec.MsgspecError):
            torn.append(
                Letter(
                    entry_id=f"{leased.trace_id}/{stored[:DIGEST_BYTES].hex()}",
                    reason="invalid_schema",
                    detail="the waiting chunk cannot be read by this release",
                    fields={b"p": stored},
                    trace_id=leased.trace_id,
                    known=stored[:DIGEST_BYTES] in leased.counted,
                )
            )
    return sorted(records, key=_by_entry), tuple(torn)


def _by_entry(record: Record) -> tuple[int, int]:
    milliseconds, _, sequence = record.entry_id.partition("-")
    return int(milliseconds), int(sequence or 0)


def _digests(records: Sequence[Record]) -> bytes:
    return b"".join(record.digest for record in records)


def _letter(leased: Leased, record: Record, reason: DeadLetterReason, detail: str) -> Letter:
    return Letter(
        known=record.digest in leased.counted,
        entry_id=record.entry_id,
        reason=reason,
        detail=detail,
        fields=record.fields,
        app=record.header.app,
        trace_id=record.header.trace_id,
    )
