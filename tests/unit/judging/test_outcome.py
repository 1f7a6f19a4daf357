"""From a judgement to the final evaluation: which claims are asked, of which answer, under which version."""

from __future__ import annotations

import msgspec
import pytest

from aftercheck_schemas import Claim, ClaimJudgement, Evaluation, Interaction, Judgement, Verdict
from aftercheck_schemas.evaluation import DecidedBy
from aftercheck_worker import settings, testing
from aftercheck_worker.judge import outcome
from aftercheck_worker.models.base import ModelInfo
from aftercheck_worker.storage.judged import Judged
from aftercheck_worker.storage.judging import Provisional

JUDGE = ModelInfo(name="m", revision="", parameters={"mode": "json_schema"})


def provisional(count: int, *decides: str, audit: bool = False, by: DecidedBy = "verifier") -> Provisional:
    claims = tuple(Claim(id=f"c{n}", text=f"Claim {n}.", start=0, end=1) for n in range(1, count + 1))
    verdicts = tuple(
        Verdict(claim_id=claim.id, status="not_found", confidence=0.5, supported_probability=0.5, decided_by=by)
        for claim in claims
    )
    found = Evaluation(
        trace_id="t",
        span_id="s",
        outcome="ungrounded",
        claims=claims,
        verdicts=verdicts,
        evaluator="e",
        evaluator_version="v",
    )
    return Provisional(evaluation=found, why="band", audit=audit, probability=1.0, claims=decides)


def ids(given: Provisional) -> list[str]:
    return [claim.id for claim in outcome.asked(given)]


def test_only_the_claims_that_it_decides_are_asked_all_of_an_audited_answer() -> None:
    assert ids(provisional(3, "c2")) == ["c2"]
    assert ids(provisional(3, "c2", audit=True)) == ["c2", "c1", "c3"]
    assert ids(provisional(3)) == ["c1", "c2", "c3"]
    assert ids(provisional(3, by="policy")) == []


@pytest.mark.req("O-47")
def test_claims_beyond_the_cap_keep_the_verifiers_verdict_and_the_answer_says_so() -> None:
    names = [f"c{n}" for n in range(1, outcome.MAX_CLAIMS + 3)]
    given = provisional(len(names), *names)
    asked = ids(given)
    judgement = Judgement(
        model="m",
        claims=tuple(ClaimJudgement(claim_id=name, status="contradicted", confidence=0.9) for name in asked),
    )
    interaction = testing.interaction("x", "y")

    found, folded = outcome.judged(interaction, given.evaluation, judgement, frozenset(names), testing.evaluator())

    assert len(asked) == outcome.MAX_CLAIMS
    assert outcome.TRUNCATED in found.labels
    assert (folded.failures, found.failures) == ((), ())
    assert [verdict.decided_by for verdict in found.verdicts[-2:]] == ["verifier", "verifier"]


def test_the_judge_reads_the_answer_that_the_evaluation_is_about() -> None:
    interaction = Interaction(trace_id="t", span_id="s", app="a", answer="first", alternatives=("second", "third"))
    found = provisional(1).evaluation

    def labelled(label: str) -> str:
        return outcome.answered(interaction, msgspec.structs.replace(found, labels=(label,))).answer

    assert [labelled(name) for name in ("", "alternative_2", "alternative_3", "alternative_9")] == [
        "first",
        "second",
        "third",
        "first",
    ]


@pytest.mark.req("R25")
def test_all_that_can_change_a_verdict_changes_the_version() -> None:
    evaluator, plain = testing.evaluator(), settings.load({})
    first, spec = outcome.version(evaluator, JUDGE, plain)
    again, _ = outcome.version(evaluator, JUDGE, plain)
    others = [
        outcome.version(evaluator, msgspec.structs.replace(JUDGE, parameters={"mode": "plain"}), plain)[0],
        outcome.version(evaluator, JUDGE, plain.model_copy(update={"judge_repeats": 5}))[0],
        outcome.version(evaluator, JUDGE, plain.model_copy(update={"judge_share": "all"}))[0],
        outcome.version(testing.evaluator(name="other"), JUDGE, plain)[0],
    ]

    assert first == again
    assert len({first, *others}) == 5
    assert spec["verifier"] == evaluator.version


def test_the_verifiers_own_verdicts_are_kept_beside_the_judges() -> None:
    kept = Judged(
        why="band",
        audit=False,
        probability=1.0,
        first=(Verdict(claim_id="c2", status="unclear", confidence=0.55),),
    ).document
    assert kept["first"] == {"c2": {"status": "unclear", "confidence": 0.55}}
