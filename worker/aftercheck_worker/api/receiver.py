"""OTLP/HTTP: POST /v1/traces and /v1/logs, protobuf and JSON, gzip, into the stream that the SDK feeds.

Unmodified OpenLLMetry sends here with TRACELOOP_BASE_URL. Per the OTLP specification: 400 is never repeated by a
sender, 429 and 503 are; what cannot be used is reported as `partialSuccess`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Final, Literal

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from redis import RedisError

from aftercheck_schemas import Chunk, EntryHeader
from aftercheck_schemas.cleaning import cleaned
from aftercheck_schemas.sessions import session_of
from aftercheck_worker import otlp
from aftercheck_worker.api import redacting
from aftercheck_worker.api.access import Ingests
from aftercheck_worker.api.problem import Problem, unavailable
from aftercheck_worker.api.state import State, state_of
from aftercheck_worker.api.stream import StreamFull
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import scrub

router: Final = APIRouter()
INFLATED_BYTES: Final = 32 * 1024 * 1024
SMALL_TEXT_CHARS: Final = 32 * 1024
"""Texts are cut to this when a chunk is too large otherwise, as the SDK does."""
_ENCODINGS: Final[dict[str, otlp.Encoding]] = {"application/x-protobuf": "protobuf", "application/json": "json"}
_encoder: Final = msgspec.json.Encoder()
Decode = Callable[[bytes, otlp.Encoding], otlp.Batch]
Signal = Literal["span", "log"]


_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-protobuf": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {"type": "object"}},
        },
    }
}


@router.post("/v1/traces", tags=["otlp"], response_class=Response, openapi_extra=_BODY)
async def traces(request: Request, token: Ingests) -> Response:
    """Take spans: ExportTraceServiceRequest."""
    return await _receive(request, token.tenant, otlp.decode_traces, "span")


@router.post("/v1/logs", tags=["otlp"], response_class=Response, openapi_extra=_BODY)
async def logs(request: Request, token: Ingests) -> Response:
    """Take log records: ExportLogsServiceRequest. GenAI events are logs."""
    return await _receive(request, token.tenant, otlp.decode_logs, "log")


async def _receive(request: Request, tenant: str, decode: Decode, signal: Signal) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    encoding = _ENCODINGS.get(kind)
    if encoding is None:
        raise Problem(415, "content_type", "send application/x-protobuf or application/json")
    packed = request.headers.get("content-encoding", "identity").strip().lower()
    body = await request.body()
    state = state_of(request)
    rejected = await run_in_threadpool(_take, state, tenant, body, packed, encoding, decode, signal)
    return Response(_answer(signal, encoding, rejected), media_type=kind)


def _take(
    state: State, tenant: str, body: bytes, packed: str, encoding: otlp.Encoding, decode: Decode, signal: Signal
) -> int:
    try:
        batch = decode(inflated(body, packed), encoding)
    except otlp.OtlpError as error:
        raise Problem(400, "otlp", str(error).encode("ascii", "replace").decode()[:300]) from None
    entries: list[tuple[EntryHeader, bytes]] = []
    rejected = batch.rejected
    for trace_id, chunk in batch.chunks:
        found = entry(state.settings, trace_id, chunk, signal)
        if found is None:
            rejected += len(chunk.spans) + len(chunk.logs)
        else:
            entries.append(found)
    if entries:
        _put(state, tenant, entries)
    return rejected


def _put(state: State, tenant: str, entries: list[tuple[EntryHeader, bytes]]) -> None:
    try:
        state.stream.put(tenant, entries)
    except StreamFull:
        raise unavailable("the stream is full") from None
    except RedisError as error:
        raise unavailable("the stream does not answer") from error


def inflated(body: bytes, packed: str) -> bytes:
    """Undo the content encoding, up to 32 MiB.

    Raises:
        Problem: 415 for an unknown encoding, 400 for broken gzip, 413 for a bomb.
    """
    if packed in ("", "identity"):
        return body
    if packed not in ("gzip", "deflate"):
        raise Problem(415, "content_encoding", "send gzip, deflate or no content encoding")
    unpacker = zlib.decompressobj(47)  # zlib or gzip, told by its header
    try:
        found = unpacker.decompress(body, INFLATED_BYTES + 1)
    except zlib.error:
        raise Problem(400, "gzip", f"the body is no {packed}") from None
    if len(found) > INFLATED_BYTES:
        raise Problem(413, "too_large", f"the body inflates to more than {INFLATED_BYTES} bytes")
    if not unpacker.eof:
        raise Problem(400, "gzip", f"the {packed} body ends too early")
    return found


def entry(settings: Settings, trace_id: str, chunk: Chunk, signal: Signal) -> tuple[EntryHeader, bytes] | None:
    """Return the stream entry of a chunk, redacted; None when it is larger than `max_payload_bytes` of JSON."""
    app = scrub.text(_word(chunk, "service.name"))[:200] or "unknown"
    for chars in (redacting.TEXT_CHARS, SMALL_TEXT_CHARS):
        clean = cleaned(chunk, redacting.slimmer(settings, app, trace_id, chars))
        document = _encode(clean)
        if len(document) <= settings.max_payload_bytes:
            return _header(app, trace_id, clean, signal, len(document)), zlib.compress(document, 1)
    return None


def _header(app: str, trace_id: str, chunk: Chunk, signal: Signal, size: int) -> EntryHeader:
    roots = [span for span in chunk.spans if span.parent_id is None or span.parent_is_remote]
    return EntryHeader(
        kind=signal,
        app=app,
        environment=scrub.text(_word(chunk, "deployment.environment.name") or _word(chunk, "deployment.environment")),
        trace_id=trace_id,
        session_id=session_of(chunk.spans),
        source="otlp",
        root=bool(roots),
        remote_root=any(span.parent_is_remote for span in roots),
        size=size,
    )


def _encode(chunk: Chunk) -> bytes:
    try:
        return _encoder.encode(chunk)
    except UnicodeEncodeError:
        return scrub.encode(chunk)


def _word(chunk: Chunk, key: str) -> str:
    value = chunk.resource.get(key)
    return value if isinstance(value, str) else ""


def _answer(signal: Signal, encoding: otlp.Encoding, rejected: int) -> bytes:
    name = "rejectedSpans" if signal == "span" else "rejectedLogRecords"
    why = "without usable ids, or larger than AFTERCHECK_MAX_PAYLOAD_BYTES" if rejected else ""
    if encoding == "json":
        partial = {"partialSuccess": {name: str(rejected), "errorMessage": why}} if rejected else {}
        return json.dumps(partial).encode()
    reply = ExportTraceServiceResponse() if signal == "span" else ExportLogsServiceResponse()
    if rejected and isinstance(reply, ExportTraceServiceResponse):
        reply.partial_success.rejected_spans = rejected
    elif rejected and isinstance(reply, ExportLogsServiceResponse):
        reply.partial_success.rejected_log_records = rejected
    if rejected:
        reply.partial_success.error_message = why
    encoded: bytes = reply.SerializeToString()
    return encoded
