"""Folding a judgement: what a judge may change, and what it may never do alone (S12, S13)."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import ClaimJudgement, Evidence, Judgement, Verdict
from aftercheck_schemas.evaluation import DecidedBy
from aftercheck_schemas.vocabulary import CLAIM_STATUSES, ClaimStatus
from aftercheck_worker.stages.judging.verdicts import FLOOR, Folded, fold

QUOTE = Evidence(source_id="s1", start=0, end=5, text="A red", score=1.0)
BEFORE: list[DecidedBy] = [by for by in get_args(DecidedBy) if by != "judge"]


def verdict(status: ClaimStatus, support: float | None = 0.5, by: DecidedBy = "verifier") -> Verdict:
    return Verdict(
        claim_id="c1", status=status, confidence=0.6, supported_probability=support, reason="x", decided_by=by
    )


def judged(status: ClaimStatus | None, *, quoted: bool = True) -> Judgement:
    claim = ClaimJudgement(claim_id="c1", status=status, confidence=0.9, evidence=(QUOTE,) if quoted else ())
    return Judgement(model="m", claims=(claim,))


def folded(
    before: Verdict, judgement: Judgement, checked: Verdict | None, decides: frozenset[str] | None = None
) -> Folded:
    return fold([before], judgement, {} if checked is None else {"c1": checked}, decides)


def status(before: Verdict, judgement: Judgement, checked: Verdict | None) -> ClaimStatus:
    return folded(before, judgement, checked).verdicts[0].status


@pytest.mark.req("R24", "S13")
def test_a_quoted_and_cross_checked_support_counts() -> None:
    found = folded(verdict("not_found", 0.45), judged("supported"), verdict("not_found", 0.45))

    (final,) = found.verdicts
    assert (final.status, final.decided_by, final.evidence) == ("supported", "judge", (QUOTE,))
    assert final.supported_probability == 0.75
    assert (found.decided_by, found.agreed, found.disagreed, found.refused) == ("judge", 0, 1, 0)


@pytest.mark.req("S13")
@pytest.mark.parametrize(
    "checked",
    [
        None,
        verdict("contradicted", 0.6),
        verdict("not_found", FLOOR - 0.01),
        verdict("unclear", None),
        verdict("not_found", 0.9, "check"),
    ],
)
def test_a_support_that_the_cross_check_refuses_is_unclear_or_the_verifiers(checked: Verdict | None) -> None:
    assert status(verdict("supported", 0.6), judged("supported"), checked) == "unclear"
    assert status(verdict("unclear", 0.5), judged("supported"), checked) == "unclear"
    assert status(verdict("not_found", 0.4), judged("supported"), checked) == "not_found"
    assert status(verdict("contradicted", 0.4), judged("supported"), checked) == "contradicted"


@pytest.mark.req("S12")
def test_a_support_without_a_quote_never_counts() -> None:
    good = verdict("supported", 0.99)

    assert status(verdict("unclear"), judged("supported", quoted=False), good) == "unclear"


def test_what_a_check_convicted_stays_convicted() -> None:
    before = verdict("contradicted", 0.2, "check")

    found = folded(before, judged("supported"), verdict("supported", 0.99))

    assert found.verdicts == (before,)
    assert found.refused == 1


@pytest.mark.parametrize(("checked", "expected"), [("supported", "unclear"), ("not_found", "contradicted")])
def test_a_contradiction_counts_unless_its_own_quote_supports_the_claim(
    checked: ClaimStatus, expected: ClaimStatus
) -> None:
    assert status(verdict("supported", 0.6), judged("contradicted"), verdict(checked, 0.6)) == expected


def test_not_found_and_unclear_need_no_quote() -> None:
    assert status(verdict("supported", 0.6), judged("not_found", quoted=False), None) == "not_found"
    assert status(verdict("supported", 0.6), judged("unclear", quoted=False), None) == "unclear"


@pytest.mark.req("P7", "F21")
@pytest.mark.parametrize("judgement", [judged(None), Judgement(model="m")])
def test_a_failure_keeps_the_verifiers_verdict(judgement: Judgement) -> None:
    before = verdict("supported", 0.6)

    found = folded(before, judgement, None)

    assert found.verdicts == (msgspec.structs.replace(before, decided_by="verifier_fallback"),)
    assert (found.decided_by, [failure.reason for failure in found.failures]) == (
        "verifier_fallback",
        ["judge_unparsable"],
    )


def test_an_audit_changes_nothing_and_counts_the_disagreement() -> None:
    before = verdict("supported", 0.95)

    found = folded(before, judged("not_found"), None, frozenset())

    assert found.verdicts == (before,)
    assert (found.decided_by, found.agreed, found.disagreed, found.refused) == ("verifier", 0, 1, 0)


@pytest.mark.req("S17")
@given(
    before=st.builds(verdict, st.sampled_from(CLAIM_STATUSES), st.none() | st.floats(0, 1), st.sampled_from(BEFORE)),
    said=st.builds(judged, st.none() | st.sampled_from(CLAIM_STATUSES), quoted=st.booleans()),
    checked=st.none() | st.builds(verdict, st.sampled_from(CLAIM_STATUSES), st.none() | st.floats(0, 1)),
)
def test_supported_needs_the_verifier_or_all_of_judge_quote_and_cross_check(
    before: Verdict, said: Judgement, checked: Verdict | None
) -> None:
    final = folded(before, said, checked).verdicts[0]
    (claim,) = said.claims

    if final.status == "supported" and final.decided_by == "judge":
        assert claim.status == "supported"
        assert claim.evidence
        assert checked is not None
        assert checked.status == "supported" or (checked.supported_probability or 0.0) >= FLOOR
    if final.status == "supported" and final.decided_by != "judge":
        assert before.status == "supported"
    assert final.supported_probability is None or 0 <= final.supported_probability <= 1
    assert 0 <= final.confidence <= 1
