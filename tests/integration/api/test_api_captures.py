"""Every capture, sent over HTTP as protobuf and as JSON, gives the interactions that the reviewed dump gives."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from fastapi.testclient import TestClient
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from aftercheck_schemas import Chunk, Json, decode_entry
from aftercheck_schemas.wire import stream_key
from aftercheck_worker.intake.link import Link
from aftercheck_worker.otlp import decode_traces
from aftercheck_worker.stages.assembly import assemble
from aftercheck_worker.stages.extraction import extract
from aftercheck_worker.stages.extraction.shape import is_dict, is_list
from tests.integration.api.test_api_routes import entries

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


@pytest.mark.req("R1", "R42")
def test_captures_come_through_both_encodings(client: Client, redis_url: str) -> None:
    app = client("ingest", api_rate_per_minute=1_000_000)
    files = sorted(CAPTURES.rglob("*.otlp.pb"))
    assert len(files) >= 120
    for path in files:
        body = path.read_bytes()
        wanted = interactions(list(decode_traces(body).chunks))
        assert interactions(sent(app, redis_url, body, "application/x-protobuf")) == wanted, path
        assert interactions(sent(app, redis_url, as_json(body), "application/json")) == wanted, path
