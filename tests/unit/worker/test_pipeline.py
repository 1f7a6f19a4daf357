"""The pipeline: one evaluation per interaction, in order, models called once per batch."""

from __future__ import annotations

import msgspec
import pytest

from aftercheck_schemas.vocabulary import NOT_ASSESSABLE_REASONS, NotAssessableReason
from aftercheck_worker import evaluators, pipeline, settings, testing


def lexical() -> evaluators.Evaluator:
    return evaluators.resolve("lexical-v1", settings.load({}))


@pytest.mark.req("R7")
def test_a_batch_keeps_its_order_and_calls_the_verifier_once() -> None:
    verifier = testing.ScriptedVerifier({"Cats sleep.": "contradicted"})
    batch = [
        testing.interaction(text, "x") for text in ("Dogs bark at night.", "", "Cats sleep.", "Birds sing here.")
    ]

    found = pipeline.evaluate_batch(batch, testing.evaluator(verifier))

    assert [(e.trace_id, e.outcome) for e in found] == [
        (batch[0].trace_id, "grounded"),
        (batch[1].trace_id, "not_assessable"),
        (batch[2].trace_id, "ungrounded"),
        (batch[3].trace_id, "grounded"),
    ]
    assert verifier.batches == [3]


@pytest.mark.parametrize("reason", NOT_ASSESSABLE_REASONS)
def test_a_reason_from_extraction_is_the_outcome(reason: NotAssessableReason) -> None:
    given = msgspec.structs.replace(testing.interaction("The fee is 5 euros.", "x"), not_assessable=reason)

    (found,) = pipeline.evaluate_batch([given], lexical())

    assert (found.outcome, found.reason, found.faithfulness, found.supported_probability) == (
        "not_assessable",
        reason,
        None,
        None,
    )


def test_no_interactions_no_evaluations() -> None:
    assert pipeline.evaluate_batch([], lexical()) == []


@pytest.mark.req("R13")
def test_the_lexical_evaluator_says_so_everywhere() -> None:
    (found,) = pipeline.evaluate_batch(
        [testing.interaction("the fee is five euros", "the fee is five euros")], lexical()
    )

    assert (found.evaluator, found.quality, found.probability_reason) == ("lexical-v1", "smoke", "uncalibrated")
    assert found.outcome == "grounded"
    assert found.supported_probability == 1.0


@pytest.mark.req("R15")
def test_an_answer_without_any_evidence_is_never_blocked() -> None:
    answer = " ".join(f"The fee number {n} is {n} euros." for n in range(8))

    (found,) = pipeline.evaluate_batch([testing.interaction(answer)], lexical())

    assert found.risk == 1.0
    assert found.action == "warn"


def test_the_worst_of_several_alternatives_counts() -> None:
    verifier = testing.ScriptedVerifier({"Cats never sleep.": "contradicted"})
    given = msgspec.structs.replace(
        testing.interaction("Dogs bark at night.", "x"), alternatives=("Birds sing here.", "Cats never sleep.")
    )

    (found,) = pipeline.evaluate_batch([given], testing.evaluator(verifier))

    assert found.hallucinated
    assert found.labels == ("alternative_3",)


@pytest.mark.parametrize("flag", ["complete", "truncated"])
def test_an_incomplete_capture_is_carried(flag: str) -> None:
    given = testing.interaction("Dogs bark at night.", "x")
    given = (
        msgspec.structs.replace(given, complete=False)
        if flag == "complete"
        else msgspec.structs.replace(given, truncated=True)
    )

    (found,) = pipeline.evaluate_batch([given], testing.evaluator())

    assert not found.complete


def test_estimated_pairs_grow_with_both_sides() -> None:
    small = pipeline.estimated_pairs(testing.interaction("x", "a"))
    large = pipeline.estimated_pairs(testing.interaction("x" * 8_000, *"abcde"))

    assert small == 1
    assert large == 505
