from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aftercheck_worker.otlp import OtlpError, decode_logs, decode_traces
from aftercheck_worker.stages.extraction.shape import is_dict, is_list

if TYPE_CHECKING:
    from aftercheck_schemas import Json

CAPTURES = Path(__file__).parents[2] / "captures"


def value_of(value: Json) -> dict[str, Any]:
    if is_list(value):
        return {"arrayValue": {"values": [value_of(item) for item in value]}}
    if is_dict(value):
        return {"kvlistValue": {"values": attributes_of(value)}}
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case _:
            return {}


def attributes_of(values: dict[str, Json]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value_of(value)} for key, value in values.items()]


def request_of(name: str) -> bytes:
    """The dump as OTLP/JSON: ids in hex, 64-bit integers as strings, enums as numbers."""
    raw = json.loads((CAPTURES / f"{name}.json").read_text("utf-8"))
    kinds = {"INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
    groups = [
        {
            "resource": {"attributes": attributes_of(item["resource"])},
            "scopeSpans": [
                {
                    "scope": {"name": item["scope"]["name"]},
                    "spans": [
                        {
                            "traceId": item["trace_id"].upper(),
                            "spanId": item["span_id"],
                            "parentSpanId": item["parent_span_id"] or "",
                            "name": item["name"],
                            "kind": kinds[item["kind"]],
                            "startTimeUnixNano": str(item["start_ns"]),
                            "endTimeUnixNano": item["end_ns"],
                            "status": {"code": {"UNSET": 0, "OK": 1, "ERROR": 2}[item["status"]["code"]]}
                            | ({"message": item["status"]["description"]} if item["status"]["description"] else {}),
                            "attributes": attributes_of(item["attributes"]),
                            "events": [
                                {
                                    "name": event["name"],
                                    "timeUnixNano": str(event["ts_ns"]),
                                    "attributes": attributes_of(event["attributes"]),
                                }
                                for event in item["events"]
                            ],
                        }
                    ],
                }
            ],
        }
        for item in raw["spans"]
    ]
    return json.dumps({"resourceSpans": groups}).encode()


NAMES = [
    "traceloop/openai_chat",
    "traceloop/chroma_rag",
    "traceloop/openai_error",
    "openinference/langchain_rag",
    "other/langfuse",
]


@pytest.mark.parametrize("name", NAMES)
def test_json_and_protobuf_give_the_same_spans(name: str) -> None:
    from_json = decode_traces(request_of(name), "json")
    from_protobuf = decode_traces((CAPTURES / f"{name}.otlp.pb").read_bytes())
    spans = [
        sorted((span for _, chunk in batch.chunks for span in chunk.spans), key=lambda span: span.span_id)
        for batch in (from_json, from_protobuf)
    ]
    assert spans[0] == spans[1]
    assert from_json.rejected == from_protobuf.rejected == 0


def one_span(**fields: Any) -> bytes:
    span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "x"} | fields
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def test_ids_are_hex_and_not_base64() -> None:
    ((trace_id, chunk),) = decode_traces(one_span(parentSpanId="EF" * 8), "json").chunks
    assert trace_id == chunk.spans[0].trace_id == "ab" * 16
    assert chunk.spans[0].span_id == "cd" * 8
    assert chunk.spans[0].parent_id == "ef" * 8


@pytest.mark.parametrize(
    "fields", [{"traceId": "0" * 32}, {"traceId": "q" * 32}, {"spanId": "ab"}, {"traceId": None}]
)
def test_span_without_usable_ids_is_rejected_and_counted(fields: dict[str, Any]) -> None:
    batch = decode_traces(one_span(**fields), "json")
    assert batch.chunks == ()
    assert batch.rejected == 1


def test_remote_parent_is_told_by_the_flags() -> None:
    for flags, remote in ((0x300, True), (0x100, False), (0x200, False), (0, False)):
        ((_, chunk),) = decode_traces(one_span(parentSpanId="12" * 8, flags=flags), "json").chunks
        assert chunk.spans[0].parent_is_remote is remote


def test_enums_may_be_names() -> None:
    body = one_span(kind="SPAN_KIND_CLIENT", status={"code": "STATUS_CODE_ERROR", "message": "no"})
    ((_, chunk),) = decode_traces(body, "json").chunks
    assert (chunk.spans[0].kind, chunk.spans[0].status, chunk.spans[0].status_message) == ("client", "error", "no")


@pytest.mark.parametrize("body", [b"\xff\xff", b"[]", b"{", b'{"a": ' * 3000])
@pytest.mark.parametrize("decode", [decode_traces, decode_logs])
def test_body_that_is_no_json_request_is_refused(decode: Any, body: bytes) -> None:
    with pytest.raises(OtlpError, match="Fix:"):
        decode(body, "json")


@pytest.mark.parametrize("decode", [decode_traces, decode_logs])
def test_body_that_is_no_protobuf_is_refused(decode: Any) -> None:
    with pytest.raises(OtlpError, match="Fix:"):
        decode(b"\x0a\xff\xff\xff\xff\x0fxx")


def test_traces_of_one_request_are_kept_apart() -> None:
    batch = decode_traces((CAPTURES / "traceloop/chroma_rag.otlp.pb").read_bytes())
    assert len(batch.chunks) == 2
    assert all(span.trace_id == trace_id for trace_id, chunk in batch.chunks for span in chunk.spans)
    assert batch.chunks[0][1].resource["service.name"] == "rag-app"


def test_log_body_and_event_name_are_read() -> None:
    record = {
        "traceId": "ab" * 16,
        "spanId": "cd" * 8,
        "attributes": attributes_of({"event.name": "gen_ai.user.message"}),
        "body": value_of({"content": "hi"}),
        "observedTimeUnixNano": "7",
    }
    body = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record, {"traceId": "", "body": {}}]}]}]})
    batch = decode_logs(body.encode(), "json")
    assert batch.rejected == 1
    log = batch.chunks[0][1].logs[0]
    assert (log.event_name, log.body, log.time) == ("gen_ai.user.message", {"content": "hi"}, 7)
