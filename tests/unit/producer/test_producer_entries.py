"""From finished spans to the stream entry: slimming, flags, hook, fail closed, size cap, and the way back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import cast

import msgspec
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags, set_span_in_context

from aftercheck import _settings
from aftercheck._buffer import Feedback
from aftercheck._entries import DroppedError, Entry, EntryWriter
from aftercheck_schemas import Chunk, EntryHeader, decode_entry
from aftercheck_schemas.redaction import Redactor

TRACER = TracerProvider().get_tracer("opentelemetry.instrumentation.openai.v1")
MESSAGES = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Who is jan@example.com?"}]}])


def _writer(**changes: object) -> EntryWriter:
    settings = _settings.load("demo", env={"AFTERCHECK_ENVIRONMENT": "prod"})
    return EntryWriter(_replace(settings, **changes))


def _replace(settings: _settings.Settings, **changes: object) -> _settings.Settings:
    import dataclasses

    return dataclasses.replace(settings, **changes)  # type: ignore[arg-type]


def _span(attributes: dict[str, object], name: str = "openai.chat", remote_parent: bool = False) -> ReadableSpan:
    context = None
    if remote_parent:
        context = set_span_in_context(NonRecordingSpan(SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(1))))
    span = TRACER.start_span(name, context=context)
    for key, value in attributes.items():
        span.set_attribute(key, cast("str", value))
    span.add_event("gen_ai.content.completion.chunk")
    span.add_event("db.query.result", {"db.query.result.document": "call +48 601 234 567"})
    span.record_exception(ValueError("bad jan@example.com"))
    span.set_status(StatusCode.ERROR, "for jan@example.com")
    span.end()
    return cast("ReadableSpan", span)


def _read(entry: Entry) -> tuple[EntryHeader, Chunk]:
    header, payload = _fields(entry)
    document = zlib.decompress(payload)
    assert header.size == len(document)
    return header, msgspec.json.decode(document, type=Chunk)


def _fields(entry: Entry) -> tuple[EntryHeader, bytes]:
    encoded = [part.encode() if isinstance(part, str) else part for part in entry.fields]
    return decode_entry(dict(zip(encoded[::2], encoded[1::2], strict=True)))


@pytest.mark.req("R1", "R2", "S01")
def test_a_chunk_survives_the_wire_slim_and_without_personal_data() -> None:
    entity = json.dumps({"q": "anna@example.com"})
    span = _span(
        {
            "gen_ai.input.messages": MESSAGES,
            "traceloop.entity.input": entity,
            "gen_ai.task.input": entity,
            "gen_ai.task.output": "differs",
            "http.url": "https://x.example/?mail=jan%40example.com",
            "gen_ai.conversation.id": "jan@example.com",
        },
        name="chat for jan@example.com",
    )
    header, chunk = _read(_writer().chunk(1, [span], complete=True))
    record = chunk.spans[0]
    assert (header.app, header.environment, header.root, header.local_complete) == ("demo", "prod", True, True)
    assert header.session_id == record.attributes["gen_ai.conversation.id"]
    assert "gen_ai.task.input" not in record.attributes, "a copy of traceloop.entity.input"
    assert record.attributes["gen_ai.task.output"] == "differs"
    assert [event.name for event in record.events] == ["db.query.result", "exception"]
    assert "exception.stacktrace" not in record.events[1].attributes
    whole = msgspec.json.encode(chunk).decode()
    assert "example.com" not in whole.replace("x.example", "")
    assert "601 234" not in whole
    assert record.status == "error"
    assert record.truncated == ()


def test_sessions_keep_their_placeholder_across_traces() -> None:
    spans = [_span({"aftercheck.session.id": "jan@example.com", "gen_ai.system": "x"}) for _ in range(2)]
    headers = [_read(_writer().chunk(n, [span], complete=False))[0] for n, span in enumerate(spans, start=1)]
    assert headers[0].session_id == headers[1].session_id
    assert headers[0].session_id.startswith("<EMAIL_")
    assert not headers[0].local_complete


def test_a_remote_parent_is_a_remote_root() -> None:
    header, chunk = _read(_writer().chunk(7, [_span({}, remote_parent=True)], complete=True))
    assert header.root
    assert header.remote_root
    assert chunk.spans[0].parent_is_remote


@pytest.mark.req("F25")
def test_long_texts_are_cut_with_a_flag_and_too_much_is_refused() -> None:
    span = _span({"gen_ai.input.messages": json.dumps([{"content": "long word " * 10_000}])})
    _, chunk = _read(_writer(max_text_chars=1_000).chunk(1, [span], complete=True))
    assert chunk.spans[0].truncated == ("gen_ai.input.messages",)
    json.loads(cast("str", chunk.spans[0].attributes["gen_ai.input.messages"]))
    _, chunk = _read(_writer(max_payload_bytes=60_000).chunk(1, [span], complete=True))
    assert chunk.spans[0].truncated, "second try with shorter texts"
    with pytest.raises(DroppedError) as caught:
        _writer(max_payload_bytes=10_000).chunk(1, [span], complete=True)
    assert caught.value.reason == "payload_too_large"


@pytest.mark.req("S04")
def test_a_failing_redaction_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError("broken rule")

    monkeypatch.setattr(Redactor, "redact", fail)
    with pytest.raises(DroppedError) as caught:
        _writer().chunk(1, [_span({"gen_ai.input.messages": MESSAGES})], complete=True)
    assert caught.value.reason == "redaction_failed"
    with pytest.raises(DroppedError) as caught:
        _writer().feedback(Feedback(1, {"comment": "a long comment"}), 10)
    assert caught.value.reason == "redaction_failed"


def _raise(_: Chunk) -> Chunk:
    raise SystemExit(3)


def _refuse(_: Chunk) -> None:
    return None


def _no_chunk(_: Chunk) -> Chunk:
    return cast("Chunk", "text")


@pytest.mark.req("S05", "P1")
@pytest.mark.parametrize("hook", [_raise, _refuse, _no_chunk], ids=["raises", "refuses", "no-chunk"])
def test_before_send_can_refuse(hook: Callable[[Chunk], Chunk | None]) -> None:
    with pytest.raises(DroppedError) as caught:
        _writer(before_send=hook).chunk(1, [_span({"gen_ai.system": "x"})], complete=True)
    assert caught.value.reason == "before_send"


@pytest.mark.req("S05")
def test_before_send_sees_redacted_text_and_may_change_it() -> None:
    seen: list[Chunk] = []

    def hook(chunk: Chunk) -> Chunk:
        seen.append(chunk)
        return Chunk(resource={"changed": True}, spans=chunk.spans)

    _, chunk = _read(_writer(before_send=hook).chunk(1, [_span({"gen_ai.input.messages": MESSAGES})], complete=True))
    assert chunk.resource == {"changed": True}
    assert "<EMAIL_" in cast("str", seen[0].spans[0].attributes["gen_ai.input.messages"])


@pytest.mark.req("S06")
def test_without_content_no_text_leaves() -> None:
    span = _span({"gen_ai.input.messages": MESSAGES, "gen_ai.prompt.0.content": "secret words", "gen_ai.system": "x"})
    _, chunk = _read(_writer(capture_content=False).chunk(1, [span], complete=True))
    assert chunk.spans[0].attributes == {"gen_ai.system": "x"}
    assert [event.name for event in chunk.spans[0].events] == ["exception"]


@pytest.mark.req("R6")
def test_feedback_and_losses_are_entries_of_their_own() -> None:
    header, payload = _fields(_writer().feedback(Feedback(5, {"value": "down", "comment": "ask jan@example.com"}), 9))
    assert (header.kind, header.trace_id) == ("feedback", f"{5:032x}")
    assert json.loads(zlib.decompress(payload))["comment"].startswith("ask <EMAIL_")
    header, payload = _fields(_writer().loss(6, 3, "buffer_full"))
    assert (header.kind, header.dropped, header.drop_reason, payload) == ("span", 3, "buffer_full", b"")


@pytest.mark.req("F25")
def test_an_app_name_with_a_lone_surrogate_is_refused_or_cleaned() -> None:
    with pytest.raises(Exception, match="no usable name"):
        _settings.load("x\ud83d", env={})
