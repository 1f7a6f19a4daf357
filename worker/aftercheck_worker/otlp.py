"""OTLP in, chunks out: `ExportTraceServiceRequest` and `ExportLogsServiceRequest`, as protobuf and as JSON.

The only file that knows `opentelemetry-proto`. OTLP/JSON differs from protobuf's own JSON: ids are hex, not
base64, and 64-bit integers may be strings (OTLP 1.x, "JSON Protobuf Encoding"), so it is read by hand.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from aftercheck_schemas import Chunk, LogRecord, SpanEvent, SpanRecord
from aftercheck_worker.stages.extraction.shape import is_dict, is_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as ProtoLog
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    from aftercheck_schemas import Json
    from aftercheck_schemas.trace import SpanStatus

Encoding = Literal["protobuf", "json"]

_KINDS: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")
_STATUSES: Final[tuple[SpanStatus, ...]] = ("unset", "ok", "error")
_HAS_IS_REMOTE: Final = 0x100
_IS_REMOTE: Final = 0x200
_MAX_DEPTH: Final = 64


class OtlpError(ValueError):
    """The body is no OTLP request of the named encoding. Answer 400: retrying cannot help."""


class Batch(msgspec.Struct, frozen=True):
    """One decoded request.

    Attributes:
        chunks: one chunk per trace id and resource, in order of appearance.
        rejected: spans or records without usable ids; report them as `partial_success`.
    """

    chunks: tuple[tuple[str, Chunk], ...]
    rejected: int = 0


def decode_traces(body: bytes, encoding: Encoding = "protobuf") -> Batch:
    """Decode the body of POST /v1/traces.

    Raises:
        OtlpError: the body cannot be read.
    """
    batch = _Batch()
    if encoding == "json":
        for resource, scope, span in _json_items(body, "resourceSpans", "scopeSpans", "spans"):
            batch.add_span(resource, _json_span(span, scope))
        return batch.done()
    request = ExportTraceServiceRequest()
    _parse(request, body)
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            for item in scoped.spans:
                batch.add_span(resource, _span(item, scoped.scope.name))
    return batch.done()


def decode_logs(body: bytes, encoding: Encoding = "protobuf") -> Batch:
    """Decode the body of POST /v1/logs. Records without a trace id are rejected: they belong to no answer.

    Raises:
        OtlpError: the body cannot be read.
    """
    batch = _Batch()
    if encoding == "json":
        for resource, _, log in _json_items(body, "resourceLogs", "scopeLogs", "logRecords"):
            batch.add_log(resource, _json_log(log))
        return batch.done()
    request = ExportLogsServiceRequest()
    _parse(request, body)
    for group in request.resource_logs:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_logs:
            for item in scoped.log_records:
                batch.add_log(resource, _log(item))
    return batch.done()


class _Batch:
    """Groups spans and records by trace and resource."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, int], tuple[dict[str, Json], list[SpanRecord], list[LogRecord]]] = {}
        self._rejected = 0

    def add_span(self, resource: dict[str, Json], span: SpanRecord | None) -> None:
        if span is None or not span.span_id:
            self._rejected += 1
        else:
            self._group(span.trace_id, resource)[1].append(span)

    def add_log(self, resource: dict[str, Json], log: LogRecord | None) -> None:
        if log is None:
            self._rejected += 1
        else:
            self._group(log.trace_id, resource)[2].append(log)

    def done(self) -> Batch:
        chunks = tuple(
            (trace_id, Chunk(resource=resource, spans=tuple(spans), logs=tuple(logs)))
            for (trace_id, _), (resource, spans, logs) in self._groups.items()
        )
        return Batch(chunks, self._rejected)

    def _group(
        self, trace_id: str, resource: dict[str, Json]
    ) -> tuple[dict[str, Json], list[SpanRecord], list[LogRecord]]:
        return self._groups.setdefault((trace_id, id(resource)), (resource, [], []))


def _parse(request: ExportTraceServiceRequest | ExportLogsServiceRequest, body: bytes) -> None:
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        msg = f"body is no OTLP protobuf ({error}). Fix: send application/x-protobuf from an OTLP/HTTP exporter."
        raise OtlpError(msg) from error


def _span(item: Span, scope: str) -> SpanRecord | None:
    if len(item.trace_id) != 16 or len(item.span_id) != 8:
        return None
    return SpanRecord(
        trace_id=item.trace_id.hex(),
        span_id=item.span_id.hex(),
        parent_id=item.parent_span_id.hex() if len(item.parent_span_id) == 8 else None,
        parent_is_remote=bool(item.flags & _HAS_IS_REMOTE and item.flags & _IS_REMOTE),
        name=item.name,
        kind=_kind(item.kind),
        scope=scope,
        start=item.start_time_unix_nano,
        end=item.end_time_unix_nano,
        status=_status(item.status.code),
        status_message=item.status.message,
        attributes=_attributes(item.attributes),
        events=tuple(
            SpanEvent(name=event.name, time=event.time_unix_nano, attributes=_attributes(event.attributes))
            for event in item.events
        ),
        dropped_attributes=item.dropped_attributes_count,
    )


def _log(item: ProtoLog) -> LogRecord | None:
    if len(item.trace_id) != 16:
        return None
    attributes = _attributes(item.attributes)
    return LogRecord(
        trace_id=item.trace_id.hex(),
        span_id=item.span_id.hex() if len(item.span_id) == 8 else "",
        event_name=item.event_name or _event_name(attributes),
        time=item.time_unix_nano or item.observed_time_unix_nano,
        attributes=attributes,
        body=_value(item.body),
    )


def _kind(number: int) -> str:
    return _KINDS[number] if 0 <= number < len(_KINDS) else "unspecified"


def _status(number: int) -> SpanStatus:
    return _STATUSES[number] if 0 <= number < len(_STATUSES) else "unset"


def _event_name(attributes: dict[str, Json]) -> str:
    """Before OTLP had a field for it, the name of an event was an attribute."""
    name = attributes.get("event.name")
    return name if isinstance(name, str) else ""


def _attributes(items: Iterable[KeyValue]) -> dict[str, Json]:
    return {item.key: _value(item.value) for item in items}


def _value(value: AnyValue, depth: int = 0) -> Json:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind is None or depth > _MAX_DEPTH:
        return None
    if kind == "array_value":
        return [_value(item, depth + 1) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {item.key: _value(item.value, depth + 1) for item in value.kvlist_value.values}
    if kind == "bytes_value":
        return b64encode(value.bytes_value).decode("ascii")
    plain: Json = getattr(value, kind)
    return plain


def _json_items(
    body: bytes, groups: str, scopes: str, items: str
) -> Iterable[tuple[dict[str, Json], str, dict[str, Json]]]:
    try:
        document: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"body is no JSON ({error}). Fix: send an OTLP/JSON request, or application/x-protobuf."
        raise OtlpError(msg) from error
    if not is_dict(document):
        msg = f"body is a JSON {type(document).__name__}, not an object. Fix: send an OTLP/JSON request."
        raise OtlpError(msg)
    for group in _objects(document, groups):
        resource = _json_attributes(_object(group, "resource"))
        for scoped in _objects(group, scopes):
            name = _object(scoped, "scope").get("name")
            for item in _objects(scoped, items):
                yield resource, name if isinstance(name, str) else "", item


def _objects(source: dict[str, Json], key: str) -> list[dict[str, Json]]:
    value = source.get(key)
    return [item for item in value if is_dict(item)] if is_list(value) else []


def _object(source: dict[str, Json], key: str) -> dict[str, Json]:
    value = source.get(key)
    return value if is_dict(value) else {}


def _json_span(item: dict[str, Json], scope: str) -> SpanRecord | None:
    trace_id, span_id = _hex(item.get("traceId"), 32), _hex(item.get("spanId"), 16)
    if not trace_id or not span_id:
        return None
    status = _object(item, "status")
    flags = _integer(item.get("flags"))
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=_hex(item.get("parentSpanId"), 16) or None,
        parent_is_remote=bool(flags & _HAS_IS_REMOTE and flags & _IS_REMOTE),
        name=_string(item.get("name")),
        kind=_kind(_enum(item.get("kind"), "SPAN_KIND_", _KINDS)),
        scope=scope,
        start=_integer(item.get("startTimeUnixNano")),
        end=_integer(item.get("endTimeUnixNano")),
        status=_status(_enum(status.get("code"), "STATUS_CODE_", _STATUSES)),
        status_message=_string(status.get("message")),
        attributes=_json_attributes(item),
        events=tuple(
            SpanEvent(
                name=_string(event.get("name")),
                time=_integer(event.get("timeUnixNano")),
                attributes=_json_attributes(event),
            )
            for event in _objects(item, "events")
        ),
        dropped_attributes=_integer(item.get("droppedAttributesCount")),
    )


def _json_log(item: dict[str, Json]) -> LogRecord | None:
    trace_id = _hex(item.get("traceId"), 32)
    if not trace_id:
        return None
    attributes = _json_attributes(item)
    return LogRecord(
        trace_id=trace_id,
        span_id=_hex(item.get("spanId"), 16),
        event_name=_string(item.get("eventName")) or _event_name(attributes),
        time=_integer(item.get("timeUnixNano")) or _integer(item.get("observedTimeUnixNano")),
        attributes=attributes,
        body=_json_value(item.get("body")),
    )


def _json_attributes(source: dict[str, Json]) -> dict[str, Json]:
    return {_string(item.get("key")): _json_value(item.get("value")) for item in _objects(source, "attributes")}


def _json_value(value: Json, depth: int = 0) -> Json:
    if not is_dict(value) or depth > _MAX_DEPTH:
        return None
    for key in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if key in value:
            return value[key]
    if "intValue" in value:
        return _integer(value["intValue"])
    if "arrayValue" in value:
        return [_json_value(item, depth + 1) for item in _objects(_object(value, "arrayValue"), "values")]
    if "kvlistValue" in value:
        items = _objects(_object(value, "kvlistValue"), "values")
        return {_string(item.get("key")): _json_value(item.get("value"), depth + 1) for item in items}
    return None


def _hex(value: Json, digits: int) -> str:
    """An id in lower case, "" when it is no id. All zeros mean that there is none."""
    if not isinstance(value, str) or len(value) != digits:
        return ""
    word = value.lower()
    return word if all(c in "0123456789abcdef" for c in word) and word.strip("0") else ""


def _string(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: Json) -> int:
    if isinstance(value, bool):
        return 0
    if isinstance(value, str) and len(value) < 21 and value.removeprefix("-").isdecimal():
        return int(value)
    return int(value) if isinstance(value, (int, float)) and abs(value) < 2**63 else 0


def _enum(value: Json, prefix: str, words: tuple[str, ...]) -> int:
    """Enums are numbers; some senders write their names."""
    if isinstance(value, str):
        word = value.removeprefix(prefix).lower()
        return words.index(word) if word in words else 0
    return _integer(value)
