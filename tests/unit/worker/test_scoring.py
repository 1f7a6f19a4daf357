"""Scoring: R12 exact, risk v2, the cap, outcomes and R17's six numbers."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import CitationFinding, Claim, Evaluation, Verdict
from aftercheck_schemas.vocabulary import CLAIM_TYPES, ClaimStatus, ClaimSubtype, ClaimType, Severity
from aftercheck_worker import testing
from aftercheck_worker.stages import scoring

IDENTITY = scoring.Identity(name="test", version="0" * 64, quality="standard")
STATUSES: tuple[ClaimStatus, ...] = get_args(ClaimStatus)


def verdict(status: ClaimStatus, confidence: float = 1.0, n: int = 1, reason: str = "") -> Verdict:
    return Verdict(
        claim_id=f"c{n}", status=status, confidence=confidence, reason=reason, supported_probability=confidence
    )


def claim(
    n: int = 1, kind: ClaimType = "fact", severity: Severity = "medium", subtype: ClaimSubtype | None = None
) -> Claim:
    return Claim(id=f"c{n}", text="x", start=0, end=1, type=kind, severity=severity, subtype=subtype)


def score(
    *verdicts: Verdict,
    claims: tuple[Claim, ...] | None = None,
    abstained: bool = False,
    evidence: bool = True,
    policy: scoring.Policy | None = None,
    citations: tuple[CitationFinding, ...] = (),
    self_contradiction: bool = False,
) -> Evaluation:
    return scoring.evaluation(
        testing.interaction("x", "y"),
        tuple(claim(n) for n in range(1, len(verdicts) + 1)) if claims is None else claims,
        verdicts,
        identity=IDENTITY,
        policy=policy or scoring.Policy(),
        abstained=abstained,
        evidence=evidence,
        citations=citations,
        self_contradiction=self_contradiction,
    )


@pytest.mark.req("R12")
@pytest.mark.parametrize(
    ("verdicts", "risk", "action"),
    [
        ([], 0.0, "allow"),
        ([("supported", 1.0)], 0.0, "allow"),
        ([("contradicted", 1.0)], 0.45, "warn"),
        ([("not_found", 0.81)], 0.2025, "allow"),
        ([("contradicted", 1.0), ("not_found", 1.0)], 0.70, "block"),
        ([("contradicted", 0.999), ("not_found", 1.0)], 0.69955, "warn"),
        ([("not_found", 1.0), ("unclear", 2 / 3)], 0.35, "warn"),
        ([("unclear", 0.5)] * 5, 0.375, "warn"),
        ([("contradicted", 1.0)] * 3, 1.0, "block"),
    ],
)
def test_risk_v1_and_its_inclusive_thresholds(
    verdicts: list[tuple[ClaimStatus, float]], risk: float, action: str
) -> None:
    found = score(*(verdict(status, confidence, n) for n, (status, confidence) in enumerate(verdicts, start=1)))

    assert found.risk == pytest.approx(risk, abs=1e-12)
    assert found.action == action


@pytest.mark.req("R15")
def test_without_usable_evidence_the_action_is_at_most_warn_and_risk_stays() -> None:
    four = [verdict("not_found", 0.8, n) for n in range(1, 5)]

    capped, free = score(*four, evidence=False), score(*four, evidence=True)

    assert capped.risk == pytest.approx(0.8)
    assert capped.action == "warn"
    assert free.action == "block"


@pytest.mark.req("R12")
def test_burden_does_not_grow_with_length() -> None:
    def burden(n: int) -> float:
        verdicts = [verdict("contradicted" if k % 10 == 0 else "supported", 1.0, k) for k in range(n)]
        return scoring.risk_v2({f"c{k}": claim(k) for k in range(n)}, verdicts).burden

    assert burden(40) == pytest.approx(burden(10), abs=0.02)
    assert scoring.risk_v1([verdict("contradicted", 1.0, k) for k in range(4)]) == 1.0


@pytest.mark.req("R12")
def test_burden_by_hand() -> None:
    claims = {"c1": claim(1, severity="low"), "c2": claim(2, severity="high")}

    found = scoring.risk_v2(claims, [verdict("unclear", 0.5, 1), verdict("not_found", 0.8, 2)])

    assert found.burden == pytest.approx((0.3 * 0.5 * 0.33 + 1.0 * 0.8 * 0.55 + 0.1) / (1.3 + 2))
    assert found.critical == pytest.approx(0.44)
    assert found.value == found.critical


@pytest.mark.req("R15")
@pytest.mark.parametrize(
    ("kind", "subtype", "floor"),
    [
        ("quote", None, 0.70),
        ("fact", "action_done", 0.70),
        ("fact", "system_state", 0.35),
        ("number", None, 0.35),
        ("fact", None, 0.0),
    ],
)
def test_floors_by_type(kind: ClaimType, subtype: ClaimSubtype | None, floor: float) -> None:
    found = scoring.risk_v2({"c1": claim(1, kind, subtype=subtype)}, [verdict("not_found", 0.1)])

    assert found.critical == floor


@pytest.mark.req("R12")
def test_action_follows_the_formula_that_the_policy_names() -> None:
    certain = (verdict("contradicted", 1.0),)
    severe = (claim(1, severity="high"),)

    v1 = score(*certain, claims=severe)
    v2 = score(*certain, claims=severe, policy=scoring.Policy(action_from="v2"))

    assert (v1.action, v2.action) == ("warn", "block")
    assert (v1.risk, v1.risk_v2) == (v2.risk, v2.risk_v2)


@pytest.mark.parametrize(
    ("statuses", "outcome", "lower", "upper", "hallucinated"),
    [
        (["supported", "supported"], "grounded", 1.0, 1.0, False),
        (["supported", "unclear"], "ungrounded", 0.5, 1.0, False),
        (["supported", "not_found"], "ungrounded", 0.5, 0.5, True),
        (["contradicted", "unclear"], "ungrounded", 0.0, 0.5, True),
        ([], "no_claims", None, None, False),
    ],
)
def test_outcome_and_bounds(
    statuses: list[ClaimStatus], outcome: str, lower: float | None, upper: float | None, hallucinated: bool
) -> None:
    found = score(*(verdict(status, 1.0, n) for n, status in enumerate(statuses, start=1)))

    assert (found.outcome, found.faithfulness, found.faithfulness_upper) == (outcome, lower, upper)
    assert found.hallucinated is hallucinated
    assert found.flagged is hallucinated


def test_abstention_wins_even_beside_supported_claims_and_has_no_score() -> None:
    found = score(verdict("supported"), verdict("not_found", n=2), abstained=True)

    assert (found.outcome, found.faithfulness, found.supported_probability) == ("abstained", None, None)
    assert (found.hallucinated, found.flagged, found.critical) == (False, False, 0)
    assert found.probability_reason == "abstained"


def test_an_abstention_that_contradicts_its_context_is_flagged() -> None:
    assert score(verdict("contradicted"), abstained=True).flagged


@pytest.mark.parametrize(
    ("citations", "reason", "self_contradiction"),
    [
        ((CitationFinding(claim_id="c1", label="9"),), "", False),
        ((CitationFinding(claim_id="c1", label="1", source_id="1", exists=True, entails=False),), "", False),
        ((), "", True),
    ],
)
def test_a_grounded_answer_is_flagged_for_a_wrong_citation_or_a_self_contradiction(
    citations: tuple[CitationFinding, ...], reason: str, self_contradiction: bool
) -> None:
    found = score(verdict("supported", reason=reason), citations=citations, self_contradiction=self_contradiction)

    assert (found.outcome, found.faithfulness, found.hallucinated, found.flagged) == ("grounded", 1.0, False, True)


def test_unclear_is_flagged_only_for_conflicting_sources() -> None:
    assert not score(verdict("unclear", reason="elided")).flagged
    assert score(verdict("unclear", reason="conflicting_sources")).flagged


@pytest.mark.parametrize(
    ("subject", "critical"),
    [
        (claim(severity="high"), 1),
        (claim(kind="number"), 1),
        (claim(kind="quote"), 1),
        (claim(subtype="action_done"), 1),
        (claim(subtype="date"), 0),
        (claim(severity="low"), 0),
    ],
)
def test_critical_is_high_severity_or_a_type_that_needs_a_source(subject: Claim, critical: int) -> None:
    assert score(verdict("not_found"), claims=(subject,)).critical == critical
    assert score(verdict("unclear"), claims=(subject,)).critical == 0


@pytest.mark.req("R17")
def test_six_numbers_by_hand() -> None:
    claims = [claim(n, severity="high" if n == 1 else "medium") for n in range(1, 6)]
    statuses: list[ClaimStatus] = ["contradicted", "not_found", "unclear", "supported", "supported"]
    verdicts = [verdict(status, 1.0, n) for n, status in enumerate(statuses, start=1)]
    citations = [
        CitationFinding(claim_id="c4", label="1", source_id="1", exists=True, entails=True),
        CitationFinding(claim_id="c4", label="2", source_id="2", exists=True, entails=False),
        CitationFinding(claim_id="c5", label="3"),
    ]

    found = scoring.rates(claims, verdicts, citations)

    assert found == scoring.ClaimRates(
        coverage=4 / 5,
        precision=2 / 4,
        citation_entailment=1 / 2,
        unsupported_rate=2 / 5,
        critical_unsupported=1,
        contradiction_rate=1 / 5,
    )


@pytest.mark.req("R17", "P7")
def test_six_numbers_without_claims_are_none_not_zero() -> None:
    found = scoring.rates([], [])

    assert (found.coverage, found.precision, found.citation_entailment) == (None, None, None)
    assert (found.unsupported_rate, found.contradiction_rate) == (None, None)


@pytest.mark.req("P7")
@given(
    st.lists(
        st.tuples(
            st.sampled_from(STATUSES),
            st.floats(0, 1),
            st.sampled_from(CLAIM_TYPES),
            st.sampled_from(get_args(Severity)),
        ),
        max_size=60,
    ),
    st.booleans(),
    st.booleans(),
)
def test_every_number_is_none_or_inside_its_range(
    rows: list[tuple[ClaimStatus, float, ClaimType, Severity]], abstained: bool, evidence: bool
) -> None:
    found = score(
        *(verdict(status, confidence, n) for n, (status, confidence, _, _) in enumerate(rows)),
        claims=tuple(claim(n, kind, severity) for n, (_, _, kind, severity) in enumerate(rows)),
        abstained=abstained,
        evidence=evidence,
    )

    for number in (found.risk, found.risk_v2):
        assert math.isfinite(number)
        assert 0 <= number <= 1
    for ratio in (found.faithfulness, found.faithfulness_upper, found.supported_probability):
        assert ratio is None or 0 <= ratio <= 1
    if found.faithfulness is not None and found.faithfulness_upper is not None:
        assert found.faithfulness <= found.faithfulness_upper
    assert evidence or found.action != "block"
