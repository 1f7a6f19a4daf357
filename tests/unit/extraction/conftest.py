from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aftercheck_schemas import Chunk, LogRecord, SpanEvent, SpanRecord
from aftercheck_worker.stages.assembly import assemble
from aftercheck_worker.stages.extraction import extract

if TYPE_CHECKING:
    from collections.abc import Callable

    from aftercheck_schemas import Interaction

CAPTURES = Path(__file__).parents[2] / "captures"


def span_of(raw: dict[str, Any]) -> SpanRecord:
    return SpanRecord(
        trace_id=raw["trace_id"],
        span_id=raw["span_id"],
        parent_id=raw["parent_span_id"],
        name=raw["name"],
        kind=raw["kind"].lower(),
        scope=raw["scope"]["name"],
        start=raw["start_ns"],
        end=raw["end_ns"],
        status=raw["status"]["code"].lower(),
        status_message=raw["status"]["description"] or "",
        attributes=raw["attributes"],
        events=tuple(
            SpanEvent(name=event["name"], time=event["ts_ns"], attributes=event["attributes"])
            for event in raw["events"]
        ),
        dropped_attributes=raw["dropped_attributes"],
    )


def log_of(raw: dict[str, Any]) -> LogRecord:
    return LogRecord(
        trace_id=raw["trace_id"],
        span_id=raw["span_id"],
        event_name=raw["event_name"],
        attributes=raw["attributes"],
        body=raw["body"],
    )


def chunks_of_dump(name: str) -> dict[str, list[Chunk]]:
    """The dump's spans and logs, one chunk per span as if every span came in a flush of its own."""
    raw = json.loads((CAPTURES / f"{name}.json").read_text("utf-8"))
    chunks: dict[str, list[Chunk]] = {}
    for item in raw["spans"]:
        chunk = Chunk(resource=item.get("resource", {}), spans=(span_of(item),))
        chunks.setdefault(item["trace_id"], []).append(chunk)
    logs: list[dict[str, Any]] = raw.get("logs") or []
    for item in logs:
        chunks.setdefault(item["trace_id"], []).append(Chunk(logs=(log_of(item),)))
    return chunks


def interactions(chunks: dict[str, list[Chunk]]) -> dict[str, tuple[Interaction, ...]]:
    return {trace_id: extract(assemble(trace_id, "rag-app", found)) for trace_id, found in chunks.items()}


@pytest.fixture(scope="session")
def dump() -> Callable[[str], dict[str, list[Chunk]]]:
    return chunks_of_dump
