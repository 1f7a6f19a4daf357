"""The drill's answers get the verdicts that it needs, from the evaluator that ships, and its pace is kept."""

from __future__ import annotations

import time

import pytest

from aftercheck_schemas import Interaction, Passage
from aftercheck_worker import evaluators, pipeline
from aftercheck_worker.cli import drill
from aftercheck_worker.demo.drill import EXCHANGES
from aftercheck_worker.settings import load


@pytest.mark.parametrize(("kind", "outcome"), [("right", "grounded"), ("wrong", "ungrounded")])
def test_right_answers_are_grounded_and_wrong_ones_are_not(kind: str, outcome: str) -> None:
    answers = [
        Interaction(
            trace_id=f"{number:032x}",
            span_id="1" * 16,
            app="drill",
            question=exchange.question,
            answer=getattr(exchange, kind),
            passages=(Passage(source_id="1", text=f"[{kind}] {exchange.passage}"),),
            context_source="recorded",
            context_confidence=1.0,
        )
        for number, exchange in enumerate(EXCHANGES)
    ]
    found = pipeline.evaluate_batch(answers, evaluators.resolve("default", load({})))

    assert [one.outcome for one in found] == [outcome] * len(EXCHANGES)
    # A critical claim would keep its own page open for a quarter of an hour after the drill.
    assert [one.critical for one in found] == [0] * len(EXCHANGES)


def test_wrong_answers_come_first_and_right_ones_after_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)

    rows = list(drill.paced(rate=2, wrong=10, right=5))

    kinds = [row["context"].partition(" ")[0] for row in rows]
    assert kinds == ["[wrong]"] * 20 + ["[right]"] * 10
    assert now[0] == pytest.approx(14.5)
    told = capsys.readouterr().err
    assert told.count("hallucinates") == told.count("well again") == 1
    asked = {f"Context:\n{row['context']}\n\nQuestion: {row['query']}" for row in rows}
    assert asked <= set(drill.replies())


def test_a_drill_without_wrong_answers_says_only_that_the_app_is_well(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def sleep(seconds: float) -> None:
        _ = seconds

    monkeypatch.setattr(time, "sleep", sleep)
    assert len(list(drill.paced(rate=10, wrong=0, right=1))) == 10
    told = capsys.readouterr().err
    assert ("hallucinates" in told, told.count("well again")) == (False, 1)
