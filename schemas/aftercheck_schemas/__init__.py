"""Types on the wire and in the store. Imports nothing of ours; msgspec only (it imports in about 6 ms)."""

from __future__ import annotations

from aftercheck_schemas.evaluation import (
    CitationFinding,
    Claim,
    ClaimJudgement,
    Evaluation,
    EvaluatorFailure,
    Evidence,
    Judgement,
    Verdict,
)
from aftercheck_schemas.interaction import Interaction, Message, Passage, Versions
from aftercheck_schemas.trace import Chunk, Json, LogRecord, SpanEvent, SpanRecord, Trace
from aftercheck_schemas.wire import EntryHeader, WireError, decode_entry, encode_entry, stream_key

__all__ = [
    "Chunk",
    "CitationFinding",
    "Claim",
    "ClaimJudgement",
    "EntryHeader",
    "Evaluation",
    "EvaluatorFailure",
    "Evidence",
    "Interaction",
    "Json",
    "Judgement",
    "LogRecord",
    "Message",
    "Passage",
    "SpanEvent",
    "SpanRecord",
    "Trace",
    "Verdict",
    "Versions",
    "WireError",
    "decode_entry",
    "encode_entry",
    "stream_key",
]
