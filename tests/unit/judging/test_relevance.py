"""Relevance: rank matters, quotes are checked, declined is not zero, silence is a failure."""

from __future__ import annotations

import json

import pytest

from aftercheck_schemas import EvaluatorFailure, Passage
from aftercheck_worker.stages.judging.relevance import (
    RelevanceScore,
    answer_relevance,
    context_relevance,
    rank_score,
)

PASSAGES = [Passage(source_id=f"s{i}", text=f"Passage {i} speaks of thing {i}.") for i in range(1, 11)]


def graded(grades: dict[int, int], quote: str = "speaks of thing") -> str:
    rows = [
        {"source_id": f"s{i}", "evidence": quote, "reasoning": "r", "score": grades.get(i, 0)} for i in range(1, 11)
    ]
    return json.dumps({"passages": rows})


@pytest.mark.req("R21")
def test_an_answer_at_rank_eight_scores_low() -> None:
    late = context_relevance(graded({8: 3}), PASSAGES)
    early = context_relevance(graded({1: 3}), PASSAGES)

    assert isinstance(late, RelevanceScore)
    assert isinstance(early, RelevanceScore)
    assert early.score == 1.0
    assert late.score is not None
    assert late.score < 0.35
    assert late.precision_at_k[7] == 1 / 8


def test_a_grade_needs_a_quote_that_is_there() -> None:
    found = context_relevance(graded({1: 3}, quote="never written"), PASSAGES)

    assert isinstance(found, RelevanceScore)
    assert found.grades[0] == 1


@pytest.mark.parametrize("raw", ["", "5", graded({})[:-300], graded({1: 4}), '{"passages": []}'])
def test_incomplete_replies_are_failures(raw: str) -> None:
    assert isinstance(context_relevance(raw, PASSAGES), EvaluatorFailure)


def test_no_passages_is_not_zero() -> None:
    assert context_relevance("", []) == RelevanceScore(criterion="context_relevance", score=None)


def parts(*statuses: str, quote: str = "The fee is 5 EUR") -> str:
    return json.dumps({"parts": [{"part": "p", "evidence": quote, "reasoning": "r", "status": s} for s in statuses]})


@pytest.mark.req("R21")
@pytest.mark.parametrize(
    ("statuses", "score"),
    [
        (["answered"], 1.0),
        (["answered", "not_answered"], 0.5),
        (["answered", "declined"], 1.0),
        (["declined"], None),
        (["Not_Answered"], 0.0),
    ],
)
def test_parts(statuses: list[str], score: float | None) -> None:
    found = answer_relevance(parts(*statuses), "The fee is 5 EUR per day.")

    assert isinstance(found, RelevanceScore)
    assert found.score == score


def test_an_answered_part_quotes_the_answer() -> None:
    found = answer_relevance(parts("answered", quote="something else"), "The fee is 5 EUR per day.")

    assert isinstance(found, RelevanceScore)
    assert found.score == 0.0


def test_an_unknown_part_status_is_a_failure() -> None:
    assert isinstance(answer_relevance(parts("yes"), "The fee is 5 EUR."), EvaluatorFailure)


def test_rank_score_is_bounded() -> None:
    assert rank_score([3] * 50) == 1.0
    assert rank_score([]) == 0.0
    assert rank_score([1] * 3) < 0.35
