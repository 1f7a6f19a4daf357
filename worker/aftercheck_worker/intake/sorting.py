"""What to do with each stream entry, by its header alone: hold, cold, feedback, dead letter, or leave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from aftercheck_schemas import EntryHeader, WireError, decode_entry
from aftercheck_schemas.vocabulary import DEAD_LETTER_REASONS, DROP_REASONS, DeadLetterReason
from aftercheck_worker.intake import thumb
from aftercheck_worker.intake.gate import Rejected
from aftercheck_worker.intake.rates import Rates
from aftercheck_worker.intake.readiness import Patience
from aftercheck_worker.intake.reading import Letter
from aftercheck_worker.intake.record import digest_of, pack
from aftercheck_worker.intake.stream import MAX_DELIVERIES, Entry, Move
from aftercheck_worker.storage.feedback import Feedback

_REASONS: Final[dict[str, DeadLetterReason]] = {reason: reason for reason in DEAD_LETTER_REASONS}


class Bundle(msgspec.Struct, frozen=True):
    """Sorted entries.

    Attributes:
        moves: may be taken off the stream at once.
        letters, words: to be written to Postgres first, with the entry each stands for and its move.
        newer: entries of a later wire version; they stay on the stream for a later release of us.
    """

    moves: list[Move]
    letters: list[tuple[Entry, Letter, Move]]
    words: list[tuple[Entry, Feedback, Move]]
    newer: list[Entry]


class Sorter:
    """Sorts the entries of one tenant."""

    def __init__(self, rates: Rates, patience: Patience, *, limit: int) -> None:
        self._rates, self._limit = rates, limit
        self._wait = {"sdk": round(patience.quiet * 1000), "otlp": round(patience.quiet_otlp * 1000)}

    def sort(self, entries: Iterable[Entry]) -> Bundle:
        """Sort. Never raises: an entry that breaks our code becomes a dead letter."""
        bundle = Bundle([], [], [], [])
        for entry in entries:
            try:
                self._place(entry, bundle)
            except WireError as error:
                if error.reason == "version_newer":
                    bundle.newer.append(entry)
                else:
                    _refuse(bundle, entry, _REASONS.get(error.reason, "header_invalid"), error.detail)
            except Rejected as error:
                _refuse(bundle, entry, error.reason, error.detail)
            except Exception as error:  # noqa: BLE001 - whatever an entry does to us, the others go on
                _refuse(bundle, entry, "poison", f"{type(error).__name__} while the entry was sorted")
        return bundle

    def _place(self, entry: Entry, bundle: Bundle) -> None:
        header, payload = decode_entry(entry.fields)
        if entry.deliveries > MAX_DELIVERIES:
            detail = f"delivered {entry.deliveries - 1} times and never ended"
            _refuse(bundle, entry, "poison", detail, header)
        elif len(payload) > self._limit or header.size > self._limit:
            size = max(len(payload), header.size)
            _refuse(bundle, entry, "too_large", f"{size} bytes, the limit is {self._limit}", header)
        elif header.kind == "feedback":
            try:
                word = thumb.read(header, payload)
            except Rejected as error:
                _refuse(bundle, entry, error.reason, error.detail, header)
                return
            move = Move(
                entry_id=entry.id,
                action="feedback",
                app=header.app,
                trace_id=header.trace_id,
                size=len(payload),
            )
            bundle.words.append((entry, word, move))
        else:
            bundle.moves.append(self._trace_move(entry, header, payload))

    def _trace_move(self, entry: Entry, header: EntryHeader, payload: bytes) -> Move:
        lost = ""
        if not payload:
            lost = header.drop_reason if header.drop_reason in DROP_REASONS else "internal_error"
        return Move(
            entry_id=entry.id,
            action="hold" if self._rates.passes(header) else "cold",
            app=header.app,
            trace_id=header.trace_id,
            size=len(payload),
            argument=self._wait[header.source],
            record=pack(entry.id, entry.fields, digest_of(entry.id, payload)),
            dropped=lost,
        )


def _refuse(
    bundle: Bundle, entry: Entry, reason: DeadLetterReason, detail: str, header: EntryHeader | None = None
) -> None:
    app, trace_id = (header.app, header.trace_id) if header else ("", "")
    letter = Letter(
        entry_id=entry.id.decode("ascii", "replace"),
        reason=reason,
        detail=detail,
        fields=entry.fields,
        app=app,
        trace_id=trace_id,
    )
    move = Move(
        entry_id=entry.id,
        action="rejected",
        app=app,
        trace_id=trace_id,
        size=len(entry.fields.get(b"p", b"")),
        argument=reason,
    )
    bundle.letters.append((entry, letter, move))
