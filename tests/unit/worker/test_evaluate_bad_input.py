"""Whatever is thrown at `evaluate` with the default weights, it says a named outcome and never a fake score."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec
import pytest

from aftercheck_worker import evaluate, evaluators, settings
from aftercheck_worker.models import registry

pytestmark = pytest.mark.skipif(
    not (registry.SHIPPED / evaluators.ENGLISH / "config.json").is_file(), reason="the wheel carries no weights"
)
PASSAGE = "The cancellation fee is five euros for all plans. Refunds take 14 days."
GARBAGE = "\x00\x01\ufffd %%% \\x \u202e ||| \ud7ff ; DROP TABLE claims; -- {{7*7}} <script>"
ANSWERS = {
    "empty": "",
    "blank": " \n\t\u00a0\u2003 ",
    "garbage": GARBAGE,
    "emoji": "😀🎉👍🏽 👨‍👩‍👧‍👦",
    "emoji in a claim": "The fee 💶 is seven euros 🎉.",
    "right to left": "رسوم الإلغاء خمسة يورو لجميع الخطط.",
    "mixed scripts": "The плата за скасування is 5 евро für alle הכל.",
    "code": "```python\nfor plan in plans:\n    fee[plan] = 5\n```",
    "table": "| plan | fee |\n|---|---|\n| basic | 5 euros |\n| pro | 7 euros |",
    "only punctuation": "... --- !!! ???",
    "one word": "Yes",
    "lone number": "5",
    "combining marks": "T\u0301h\u0302e\u0303 f\u0304e\u0305e\u0306 is five euros.",
}
OUTCOMES = frozenset({"grounded", "ungrounded", "no_claims", "abstained", "not_assessable"})
NO_SCORE = frozenset({"no_claims", "abstained", "not_assessable"})


@pytest.fixture(scope="module")
def evaluator() -> evaluators.Evaluator:
    return evaluators.resolve(evaluators.GROUNDING, settings.load({}))


def run(evaluator: evaluators.Evaluator, **fields: object) -> dict[str, Any]:
    line = json.dumps({"id": "r", "query": "What is the fee?", "context": [PASSAGE], "response": "x"} | fields)
    (found,) = evaluate.evaluate([line.encode()], evaluator)
    assert isinstance(found, evaluate.Done)
    return cast("dict[str, Any]", msgspec.json.decode(msgspec.json.encode(evaluate.output(found))))


def hold(result: dict[str, Any], answer: str) -> None:
    """A named outcome; a score exactly where something was judged; offsets that are verbatim."""
    assert result["outcome"] in OUTCOMES
    assert (result["supported_probability"] is None) == (result["outcome"] in NO_SCORE)
    if result["outcome"] in NO_SCORE:
        assert result["faithfulness"] is None
        assert result["reason"] or result["probability_reason"]
    for claim in result["claims"]:
        assert answer[claim["start"] : claim["end"]] == claim["text"]


@pytest.mark.req("R19", "R38")
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer(evaluator: evaluators.Evaluator, name: str) -> None:
    hold(run(evaluator, response=ANSWERS[name]), ANSWERS[name])


@pytest.mark.req("R19", "R38")
@pytest.mark.parametrize("context", [None, "", [], [" \n "], [""], [GARBAGE], ["😀" * 50], ["0" * 10_000]])
def test_a_context_that_says_nothing_supports_nothing(evaluator: evaluators.Evaluator, context: object) -> None:
    answer = "The cancellation fee is five euros for all plans."
    result = run(evaluator, context=context, response=answer)
    hold(result, answer)
    assert result["outcome"] != "grounded"
    assert all(claim["status"] != "supported" for claim in result["claims"])


@pytest.mark.parametrize("words", [4_000, pytest.param(200_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_a_long_answer_is_read_to_its_end(evaluator: evaluators.Evaluator, words: int) -> None:
    filler = "Refunds take 14 days. " * 40
    answer = filler + "word " * words + ". The cancellation fee is seven euros for all plans."
    result = run(evaluator, response=answer)
    hold(result, answer)
    assert result["claims"][-1]["end"] == len(answer)
    assert result["claims"][-1]["status"] == "contradicted"


def test_one_of_two_hundred_passages_is_found(evaluator: evaluators.Evaluator) -> None:
    context = [f"Locker {n} stands in hall {n % 7} beside pillar {n * 3}." for n in range(199)]
    context.insert(137, PASSAGE)
    answer = "The cancellation fee is five euros for all plans."
    result = run(evaluator, context=context, response=answer)
    assert result["outcome"] == "grounded"
    assert "fee" in result["claims"][0]["evidence"][0]["text"]


@pytest.mark.parametrize("status", ["error", "ERROR"])
def test_an_error_span_is_not_assessable(evaluator: evaluators.Evaluator, status: str) -> None:
    result = run(evaluator, response="The fee is five euros.", span_status=status)
    assert result["outcome"] == "not_assessable"
    assert result["supported_probability"] is None
