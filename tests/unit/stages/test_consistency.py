"""Conflicts inside an answer and with the dialogue."""

from __future__ import annotations

import pytest

from aftercheck_schemas.interaction import Interaction, Message
from aftercheck_worker.stages.claims import split
from aftercheck_worker.stages.consistency import against_history, within


def conflicts(answer: str) -> list[tuple[str, str]]:
    return [
        (c.earlier, c.later) for c in within(split(Interaction(trace_id="t", span_id="s", app="a", answer=answer)))
    ]


@pytest.mark.req("R16")
@pytest.mark.parametrize(
    "answer",
    [
        "The plan includes 5 GB of storage. With its 50 GB you can store large videos.",
        "The notice period is 30 days. Remember that the notice period is 60 days.",
        "Refunds are possible after opening. Refunds are not possible after opening.",
        "Abonament obejmuje 5 GB miejsca. Ten abonament obejmuje 50 GB miejsca.",
    ],
)
def test_self_contradictions(answer: str) -> None:
    assert conflicts(answer) == [("c1", "c2")]


@pytest.mark.parametrize(
    "answer",
    [
        "Unit A uses 12 W. Unit B uses 20 W.",
        "The basic plan costs 5 euros. The storage is 5 GB.",
        "The fee was 5 euros. Delivery takes 3 days.",
        "It does not rain in July. In August the river floods the town.",
    ],
)
def test_no_conflict(answer: str) -> None:
    assert conflicts(answer) == []


def test_against_what_the_assistant_said_before() -> None:
    claims = split(Interaction(trace_id="t", span_id="s", app="a", answer="The notice period is 60 days."))
    history = (
        Message(role="user", text="The notice period is 10 days."),
        Message(role="assistant", text="Hi. The notice period is 30 days."),
    )
    assert [c.earlier for c in against_history(claims, history)] == ["history:2"]
