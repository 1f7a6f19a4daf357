"""The cuts that decided a claim, read from the evaluator's stored specification (R25)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

WORDS: Final = {
    "support": "supported from",
    "contradiction": "contradicted from",
    "relevance": "on topic from",
    "escalated": "despite a doubt from",
    "margin": "unclear within, below supported",
    "supported_from": "supported from",
    "not_found_to": "not found up to",
}


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A threshold, 0..1."""

    name: str
    value: float


def cuts(spec: Mapping[str, object], claim_type: str) -> list[Cut]:
    """Return the thresholds for claims of a type.

    Args:
        spec: of the evaluator, as stored; empty when it is not known any more.
        claim_type: its own cut of support, where the evaluator has one, replaces the general one.
    """
    parameters = _mapping(spec.get("parameters"))
    found = _mapping(parameters.get("thresholds")) or parameters
    own = _mapping(found.get("by_type")).get(claim_type)
    values = {**found, "support": own} if isinstance(own, int | float) else found
    return [
        Cut(name=words, value=float(value))
        for name, words in WORDS.items()
        if isinstance(value := values.get(name), int | float) and not (name == "margin" and value == 0)
    ]


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
