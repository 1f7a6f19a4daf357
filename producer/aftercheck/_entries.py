"""From the spans of one trace in one flush to one stream entry: convert, hook, encode, compress."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, cast

import msgspec

from aftercheck import _convert
from aftercheck._guard import describe, warn_once
from aftercheck_schemas import cleaning
from aftercheck_schemas.redaction import Redactor
from aftercheck_schemas.sessions import session_of
from aftercheck_schemas.slimming import Slimmer, well_formed
from aftercheck_schemas.trace import Chunk
from aftercheck_schemas.wire import EntryHeader, encode_entry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.sdk.trace import ReadableSpan

    from aftercheck._buffer import Feedback
    from aftercheck._settings import Settings
    from aftercheck_schemas.vocabulary import DropReason

SMALL_TEXT_CHARS = 32 * 1024
_encoder = msgspec.json.Encoder()


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One encoded stream entry that waits for Redis.

    Attributes:
        fields: flat field/value list of XADD.
        spans: spans in it, 0 for a header that reports a loss, 1 for a feedback.
        size: payload bytes, for admission. held: bytes to give back to the buffer when the entry is gone.
        feedback: True for a feedback.
    """

    trace_id: int
    fields: list[str | bytes]
    spans: int
    size: int
    held: int
    feedback: bool = False


class DroppedError(Exception):
    """The chunk must not be sent, for `reason`."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(reason)
        self.reason: DropReason = reason


class EntryWriter:
    """Writes stream entries for one process's settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._redactor = Redactor(settings.redaction_key)

    def chunk(self, trace_id: int, spans: list[ReadableSpan], *, complete: bool) -> Entry:
        """Encode the spans of one trace.

        Raises:
            DroppedError: `redaction_failed`, `before_send`, `serialization` or `payload_too_large`.
        """
        settings = self._settings
        chunk = self._build(trace_id, spans, settings.max_text_chars)
        document = _encode(chunk)
        if len(document) > settings.max_payload_bytes:
            chunk = self._build(trace_id, spans, SMALL_TEXT_CHARS)
            document = _encode(chunk)
            if len(document) > settings.max_payload_bytes:
                raise DroppedError("payload_too_large")
        roots = [record for record in chunk.spans if record.parent_id is None or record.parent_is_remote]
        header = self._header(
            trace_id,
            session_id=session_of(chunk.spans),
            root=bool(roots),
            remote_root=any(record.parent_is_remote for record in roots),
            local_complete=complete,
            size=len(document),
        )
        payload = zlib.compress(document, 1)
        return Entry(
            trace_id=trace_id,
            fields=encode_entry(header, payload),
            spans=len(spans),
            size=len(payload),
            held=len(payload) + 512,
        )

    def feedback(self, feedback: Feedback, held: int) -> Entry:
        """Encode a user's feedback; its comment is redacted like any text.

        Raises:
            DroppedError: `redaction_failed` or `serialization`.
        """
        try:
            payload = dict(feedback.payload)
            slimmer = Slimmer(self._redactor, f"{feedback.trace_id:032x}", 4_000)
            if isinstance(payload.get("comment"), str):
                payload["comment"] = slimmer.text(cast("str", payload["comment"]))
        except Exception as error:
            raise _closed(error) from error
        document = _encode(payload)
        body = zlib.compress(document, 1)
        header = msgspec.structs.replace(self._header(feedback.trace_id, size=len(document)), kind="feedback")
        return Entry(
            trace_id=feedback.trace_id,
            fields=encode_entry(header, body),
            spans=1,
            size=len(body),
            held=held,
            feedback=True,
        )

    def loss(self, trace_id: int, spans: int, reason: DropReason) -> Entry:
        """A header without payload: this trace lost spans, do not wait for it and do not judge it."""
        header = self._header(trace_id, dropped=spans, drop_reason=reason)
        return Entry(trace_id=trace_id, fields=encode_entry(header, b""), spans=0, size=0, held=0)

    def _header(
        self,
        trace_id: int,
        *,
        session_id: str = "",
        root: bool = False,
        remote_root: bool = False,
        local_complete: bool = False,
        dropped: int = 0,
        drop_reason: str = "",
        size: int = 0,
    ) -> EntryHeader:
        return EntryHeader(
            app=well_formed(self._settings.app),
            environment=self._settings.environment,
            trace_id=f"{trace_id:032x}",
            session_id=session_id,
            origin=self._settings.origin,
            root=root,
            remote_root=remote_root,
            local_complete=local_complete,
            dropped=dropped,
            drop_reason=drop_reason,
            size=size,
        )

    def _build(self, trace_id: int, spans: list[ReadableSpan], max_chars: int) -> Chunk:
        try:
            slimmer = Slimmer(self._redactor, f"{trace_id:032x}", max_chars)
            records = tuple(_convert.convert(span, slimmer, self._settings.capture_content) for span in spans)
            given: Mapping[str, object] = spans[0].resource.attributes
            chunk = Chunk(resource=cleaning.resource(given, slimmer), spans=records)
        except Exception as error:
            raise _closed(error) from error
        return self._hook(chunk)

    def _hook(self, chunk: Chunk) -> Chunk:
        hook = self._settings.before_send
        if hook is None:
            return chunk
        try:
            result = hook(chunk)
        except BaseException as error:
            warn_once(f"before_send raised {describe(error)}, so the trace was dropped; fix the hook")
            raise DroppedError("before_send") from error
        if result is None:
            raise DroppedError("before_send")
        if not isinstance(result, Chunk):  # pyright: ignore[reportUnnecessaryIsInstance] - the user's code
            warn_once("before_send returned no Chunk, so the trace was dropped; return the chunk or None")
            raise DroppedError("before_send")
        return result


def _closed(error: Exception) -> DroppedError:
    """Fail closed: what could not be redacted is not sent (S04)."""
    warn_once(f"redaction failed ({type(error).__name__}), so the trace was dropped; please report it")
    return DroppedError("redaction_failed")


def _encode(value: Chunk | dict[str, object]) -> bytes:
    try:
        return _encoder.encode(value)
    except Exception as error:
        warn_once(f"a trace could not be written as JSON ({type(error).__name__}) and was dropped")
        raise DroppedError("serialization") from error
