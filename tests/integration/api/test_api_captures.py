"""Every capture, sent over HTTP as protobuf and as JSON, gives the interactions that the SDK's own path gives."""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from fastapi.testclient import TestClient
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from aftercheck._entries import EntryWriter
from aftercheck._settings import load
from aftercheck_schemas import Chunk, Json, SpanRecord, decode_entry
from aftercheck_schemas.wire import stream_key
from aftercheck_worker.intake.link import Link
from aftercheck_worker.otlp import decode_traces
from aftercheck_worker.stages.assembly import assemble
from aftercheck_worker.stages.extraction import extract
from aftercheck_worker.stages.extraction.shape import is_dict, is_list
from tests.integration.api.test_api_routes import entries

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

pytestmark = pytest.mark.integration

Client = Callable[..., TestClient]
CAPTURES = Path(__file__).parents[2] / "captures"
_decoder = msgspec.json.Decoder(Chunk)


def as_json(body: bytes) -> bytes:
    """OTLP/JSON: protobuf's JSON with hex ids."""
    request = ExportTraceServiceRequest()
    request.ParseFromString(body)
    return msgspec.json.encode(_hex(MessageToDict(request)))


def _hex(value: Json, key: str = "") -> Json:
    if is_dict(value):
        return {name: _hex(item, name) for name, item in value.items()}
    if is_list(value):
        return [_hex(item) for item in value]
    if key in ("traceId", "spanId", "parentSpanId") and isinstance(value, str):
        return base64.b64decode(value).hex()
    return value


def interactions(chunks: list[tuple[str, Chunk]]) -> object:
    grouped: dict[str, list[Chunk]] = {}
    for trace_id, chunk in chunks:
        grouped.setdefault(trace_id, []).append(chunk)
    found = {name: extract(assemble(name, "rag-app", parts)) for name, parts in sorted(grouped.items())}
    return msgspec.json.decode(msgspec.json.encode(found))


def sent(app: TestClient, redis_url: str, body: bytes, kind: str) -> list[tuple[str, Chunk]]:
    link = Link(redis_url, name="test")
    link.call("DEL", stream_key())
    link.close()
    reply = app.post("/v1/traces", content=body, headers={"Content-Type": kind})
    assert reply.status_code == 200, reply.text
    assert reply.content in (b"", b"{}")
    found: list[tuple[str, Chunk]] = []
    for fields in entries(redis_url):
        header, payload = decode_entry(fields)
        document = zlib.decompress(payload)
        assert (header.kind, header.source, header.size) == ("span", "otlp", len(document))
        found.append((header.trace_id, _decoder.decode(document)))
    return found


def ended(record: SpanRecord, resource: dict[str, Json]) -> ReadableSpan:
    """The span as the OpenTelemetry SDK hands it to our processor."""

    def context(span_id: str, remote: bool) -> SpanContext:
        return SpanContext(int(record.trace_id, 16), int(span_id, 16), remote, TraceFlags(1))

    return ReadableSpan(
        name=record.name,
        context=context(record.span_id, False),
        parent=None if record.parent_id is None else context(record.parent_id, record.parent_is_remote),
        resource=Resource(plain(resource)),
        attributes=plain(record.attributes),
        events=[Event(event.name, plain(event.attributes), event.time) for event in record.events],
        kind=SpanKind[record.kind.upper()] if record.kind != "unspecified" else SpanKind.INTERNAL,
        instrumentation_scope=InstrumentationScope(record.scope),
        status=Status(StatusCode[record.status.upper()], record.status_message or None),
        start_time=record.start,
        end_time=record.end,
    )


def plain(values: dict[str, Json]) -> dict[str, AttributeValue]:
    return cast("dict[str, AttributeValue]", values)


def by_sdk(body: bytes) -> list[tuple[str, Chunk]]:
    """What `aftercheck.init` in the app would have put on the stream."""
    found: list[tuple[str, Chunk]] = []
    for trace_id, chunk in decode_traces(body).chunks:
        service = chunk.resource.get("service.name")
        writer = EntryWriter(load(service if isinstance(service, str) else "unknown", env={}))
        entry = writer.chunk(int(trace_id, 16), [ended(span, chunk.resource) for span in chunk.spans], complete=True)
        found.append((trace_id, _decoder.decode(zlib.decompress(cast("bytes", entry.fields[-1])))))
    return found


SECRETS = "Write to jan.kowalski@example.com or call +48 601 234 567; the key is sk-abcdefghijklmnop1234."


@pytest.mark.req("S01", "S04")
@pytest.mark.parametrize("kind", ["application/x-protobuf", "application/json"])
def test_secrets_over_otlp_become_the_placeholders_of_the_sdk(client: Client, redis_url: str, kind: str) -> None:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "shop"
    span = group.scope_spans.add().spans.add(name="chat", kind=3, trace_id=os.urandom(16), span_id=os.urandom(8))
    messages = msgspec.json.encode([{"role": "user", "parts": [{"type": "text", "content": SECRETS}]}]).decode()
    for key, value in (
        ("gen_ai.input.messages", messages),
        ("session.id", "jan.kowalski@example.com"),
        ("gen_ai.tool.call.arguments", '{"password": "hunter2"}'),
    ):
        span.attributes.add(key=key).value.string_value = value
    span.events.add(name="gen_ai.content.completion.chunk")
    body = request.SerializeToString()
    found = sent(client("ingest"), redis_url, body if kind.endswith("protobuf") else as_json(body), kind)
    assert found == by_sdk(body)
    text = msgspec.json.encode(found).decode()
    for word in ("kowalski", "601 234", "sk-abc", "hunter2"):
        assert word not in text
    assert "<EMAIL_" in text
    assert entries(redis_url)[-1][b"sid"].startswith(b"<EMAIL_")


@pytest.mark.req("R1", "R42")
def test_captures_come_through_both_encodings(client: Client, redis_url: str) -> None:
    app = client("ingest", api_rate_per_minute=1_000_000)
    files = sorted(CAPTURES.rglob("*.otlp.pb"))
    assert len(files) >= 120
    for path in files:
        body = path.read_bytes()
        wanted = interactions(by_sdk(body))
        assert interactions(sent(app, redis_url, body, "application/x-protobuf")) == wanted, path
        assert interactions(sent(app, redis_url, as_json(body), "application/json")) == wanted, path
