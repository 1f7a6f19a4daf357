"""Every dump under tests/captures gives what its reviewed expectation says, from JSON and from OTLP alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from aftercheck_schemas import Chunk
from aftercheck_worker.otlp import decode_logs, decode_traces
from aftercheck_worker.stages.assembly import assemble
from aftercheck_worker.stages.extraction import extract
from aftercheck_worker.stages.extraction.shape import is_dict, is_list

if TYPE_CHECKING:
    from collections.abc import Callable

    from aftercheck_schemas import Interaction, Json, LogRecord, Passage

    Dump = Callable[[str], dict[str, list[Chunk]]]

CAPTURES = Path(__file__).parents[2] / "captures"
EXPECTED = CAPTURES / "expected"
NAMES = sorted(str(path.relative_to(EXPECTED).with_suffix("")) for path in EXPECTED.rglob("*.json"))
TWINS = [name for name in NAMES if (CAPTURES / f"{name}.otlp.pb").exists()]


def extracted(chunks: dict[str, list[Chunk]]) -> dict[str, tuple[Interaction, ...]]:
    return {trace_id: extract(assemble(trace_id, "rag-app", found)) for trace_id, found in chunks.items()}


def seen(interaction: Interaction) -> dict[str, Any]:
    return {
        "span_id": interaction.span_id,
        "question": interaction.question,
        "answer": interaction.answer,
        "passages": [passage_of(passage) for passage in interaction.passages],
        "context_source": interaction.context_source,
        "session_id": interaction.session_id,
        "turn": interaction.turn,
        "call_index": interaction.call_index,
        "context_tokens": interaction.context_tokens,
        "not_assessable": interaction.not_assessable,
        "model": interaction.model,
        "provider": interaction.provider,
        "history": len(interaction.history),
    } | ({"alternatives": list(interaction.alternatives)} if interaction.alternatives else {})


def passage_of(passage: Passage) -> dict[str, Any]:
    found: dict[str, Any] = {"source_id": passage.source_id, "text": passage.text, "kind": passage.kind}
    if passage.kind == "tool_result":
        found["name"] = passage.name
    if passage.elided:
        found["elided"] = True
    return found


@pytest.mark.req("R5")
@pytest.mark.parametrize("name", NAMES)
def test_dump_gives_its_reviewed_expectation(name: str, dump: Dump) -> None:
    expected = json.loads((EXPECTED / f"{name}.json").read_text("utf-8"))
    found = extracted(dump(name))
    assert [
        {"trace_id": trace_id, "interactions": [seen(one) for one in interactions]}
        for trace_id, interactions in found.items()
    ] == expected["traces"]


@pytest.mark.req("R42")
@pytest.mark.parametrize("name", TWINS)
def test_otlp_protobuf_twin_gives_the_same(name: str, dump: Dump) -> None:
    chunks = dump(name)
    logs = [log for found in chunks.values() for chunk in found for log in chunk.logs]
    decoded: dict[str, list[Chunk]] = {}
    for batch in (decode_traces((CAPTURES / f"{name}.otlp.pb").read_bytes()), decode_logs(otlp_of(logs))):
        assert batch.rejected == 0
        for trace_id, chunk in batch.chunks:
            decoded.setdefault(trace_id, []).append(chunk)
    # Compared as JSON: OTLP tells 1.0 from 1, and so do we, but not whether a list was a tuple.
    assert plain(extracted(decoded)) == plain(extracted(chunks))


def plain(found: dict[str, tuple[Interaction, ...]]) -> object:
    return msgspec.json.decode(msgspec.json.encode(dict(sorted(found.items()))))


def otlp_of(logs: list[LogRecord]) -> bytes:
    """The dump's log records as the protobuf that an exporter would send."""
    request = ExportLogsServiceRequest()
    records = request.resource_logs.add().scope_logs.add().log_records
    for log in logs:
        record = records.add(
            trace_id=bytes.fromhex(log.trace_id), span_id=bytes.fromhex(log.span_id), event_name=log.event_name
        )
        record.attributes.extend(KeyValue(key=key, value=any_value(value)) for key, value in log.attributes.items())
        record.body.CopyFrom(any_value(log.body))
    return bytes(request.SerializeToString())


def any_value(value: Json) -> AnyValue:
    found = AnyValue()
    if is_list(value):
        found.array_value.SetInParent()
        found.array_value.values.extend(any_value(item) for item in value)
        return found
    if is_dict(value):
        found.kvlist_value.SetInParent()
        found.kvlist_value.values.extend(KeyValue(key=key, value=any_value(item)) for key, item in value.items())
        return found
    match value:
        case bool():
            found.bool_value = value
        case int():
            found.int_value = value
        case float():
            found.double_value = value
        case str():
            found.string_value = value
        case _:
            pass
    return found


def test_every_dump_has_an_expectation() -> None:
    dumps = {
        str(path.relative_to(CAPTURES).with_suffix(""))
        for path in CAPTURES.rglob("*.json")
        if EXPECTED not in path.parents
    }
    assert dumps == set(NAMES)
    assert len(TWINS) >= 120
