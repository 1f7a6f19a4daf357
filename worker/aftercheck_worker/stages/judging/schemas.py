"""JSON schemas that an endpoint may enforce; property order is the order of generation (R23)."""

from __future__ import annotations

from typing import Final

from aftercheck_worker.stages.judging.prompts import Criterion

_TEXT: Final[dict[str, object]] = {"type": "string"}


def _object(**properties: object) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(item: object) -> dict[str, object]:
    return {"type": "array", "items": item}


SCHEMAS: Final[dict[Criterion, dict[str, object]]] = {
    "faithfulness": _object(
        verdicts=_list(
            _object(
                claim_id=_TEXT,
                evidence=_list(_object(source_id=_TEXT, quote=_TEXT)),
                rationale=_TEXT,
                status={"type": "string", "enum": ["supported", "contradicted", "not_found", "unclear"]},
                confidence={"type": "number", "minimum": 0, "maximum": 1},
            )
        )
    ),
    "context_relevance": _object(
        passages=_list(
            _object(
                source_id=_TEXT,
                evidence=_TEXT,
                reasoning=_TEXT,
                score={"type": "integer", "minimum": 0, "maximum": 3},
            )
        )
    ),
    "answer_relevance": _object(
        parts=_list(
            _object(
                part=_TEXT,
                evidence=_TEXT,
                reasoning=_TEXT,
                status={"type": "string", "enum": ["answered", "not_answered", "declined"]},
            )
        )
    ),
}
