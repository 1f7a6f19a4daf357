"""From scores and findings to a verdict: the order of the rules."""

from __future__ import annotations

import msgspec
import pytest

from aftercheck_schemas.evaluation import Claim, Evidence
from aftercheck_schemas.vocabulary import ClaimStatus
from aftercheck_worker.stages.checks import Finding
from aftercheck_worker.stages.decision import Score, Thresholds, decide

CLAIM = Claim(id="c1", text="The fee is 5.", start=0, end=13, type="number")
SPAN = (Evidence(source_id="d", start=0, end=3, text="fee"),)


class Pool(msgspec.Struct, frozen=True):
    available: bool = True
    missing: bool = False


def score(support: float, contradiction: float = 0.0, relevance: float = 1.0, *, elided: bool = False) -> Score:
    return Score(support=support, contradiction=contradiction, relevance=relevance, evidence=SPAN, elided=elided)


def cap(status: ClaimStatus = "not_found") -> Finding:
    return Finding(kind="number", effect="cap", status=status, reason="number_not_in_evidence")


SILENT = Finding(kind="number", effect="cap", status="not_found", reason="number_without_counterpart")
CONVICT = Finding(kind="number", effect="convict", status="contradicted", reason="number_mismatch", evidence=SPAN)
QUOTED = Finding(kind="quote", effect="support", reason="quote_exact", evidence=SPAN)
DOUBT = Finding(kind="entity", effect="escalate", reason="entity_not_in_evidence")


@pytest.mark.req("R11", "R19")
@pytest.mark.parametrize(
    ("scores", "findings", "status", "reason"),
    [
        ([score(0.9)], [], "supported", "entailed"),
        ([score(0.1), score(0.9)], [], "supported", "entailed"),
        ([score(0.1, 0.9)], [], "contradicted", "contradicted_by_source"),
        ([score(0.9), score(0.1, 0.9)], [], "unclear", "conflicting_sources"),
        ([score(0.1, 0.9, relevance=0.1)], [], "not_found", "no_relevant_evidence"),
        ([score(0.2)], [], "not_found", "not_entailed"),
        ([score(0.2, elided=True)], [], "unclear", "source_cut_off"),
        ([score(0.99)], [cap()], "not_found", "number_not_in_evidence"),
        ([score(0.1, 0.9)], [cap()], "contradicted", "contradicted_by_source"),
        ([score(0.1, 0.9)], [SILENT], "not_found", "number_without_counterpart"),
        ([score(0.99, elided=True)], [cap()], "unclear", "source_cut_off"),
        ([score(0.99)], [cap("unclear")], "unclear", "number_not_in_evidence"),
        ([score(0.99)], [CONVICT], "contradicted", "number_mismatch"),
        ([score(0.01)], [QUOTED], "supported", "quote_exact"),
        ([score(0.6)], [DOUBT], "not_found", "not_entailed"),
        ([score(0.8)], [DOUBT], "supported", "entailed"),
        (None, [], "unclear", "verifier_failed"),
        (None, [CONVICT], "contradicted", "number_mismatch"),
        ([], [], "not_found", "no_relevant_evidence"),
    ],
)
def test_rules(scores: list[Score] | None, findings: list[Finding], status: ClaimStatus, reason: str) -> None:
    verdict = decide(CLAIM, scores, findings, Pool())
    assert (verdict.status, verdict.reason) == (status, reason)
    assert 0 <= verdict.confidence <= 1
    if verdict.supported_probability is not None:
        assert (verdict.supported_probability >= 0.5) == (status == "supported") or status == "unclear"


def test_without_any_evidence_nothing_is_supported() -> None:
    verdict = decide(CLAIM, [score(0.99)], [QUOTED], Pool(available=False))
    assert (verdict.status, verdict.confidence, verdict.reason) == ("not_found", 0.8, "no_evidence_pool")
    assert decide(CLAIM, [], [], Pool(available=False, missing=True)).reason == "context_missing"


def test_own_thresholds_per_type() -> None:
    own = Thresholds(by_type={"number": 0.8})
    assert decide(CLAIM, [score(0.7)], [], Pool(), own).status == "not_found"
    assert decide(CLAIM, [score(0.7)], [], Pool()).status == "supported"
    assert decide(CLAIM, [score(0.45)], [], Pool(), Thresholds(margin=0.1)).reason == "low_margin"
