"""The vocabulary is the one of requirements.md, word for word."""

from __future__ import annotations

import pytest

from aftercheck_schemas import vocabulary


@pytest.mark.req("R11", "R9", "R53", "P4", "P7")
def test_words() -> None:
    assert vocabulary.CLAIM_STATUSES == ("supported", "contradicted", "not_found", "unclear")
    assert vocabulary.CLAIM_TYPES == ("fact", "number", "quote", "causal", "code", "plan")
    assert vocabulary.ORIGINS == ("production", "forced", "check", "replay", "golden")
    assert vocabulary.OUTCOMES == ("grounded", "ungrounded", "abstained", "no_claims", "not_assessable")
    assert vocabulary.TERMINAL_STATES == (
        "scored",
        "abstained",
        "not_assessable",
        "failed",
        "dead_letter",
        "expired",
        "erased",
    )
    assert set(vocabulary.EVIDENCE_KIND_ALIASES) >= {"doc", "tool_log", "history"}


def test_aliases_lead_to_kinds() -> None:
    assert set(vocabulary.EVIDENCE_KIND_ALIASES.values()) <= set(vocabulary.EVIDENCE_KINDS)
