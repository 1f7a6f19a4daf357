"""What `aftercheck fatigue` says and draws."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from aftercheck_worker import fatigue
from aftercheck_worker.cli import fatigue_picture
from aftercheck_worker.cli.fatigue import said
from aftercheck_worker.storage.sessions import SessionAnswer

SVG = "{http://www.w3.org/2000/svg}"


def report(app: str = "shop", sessions: int = 60, fall: float = 0.1) -> fatigue.Report:
    return fatigue.report(
        SessionAnswer(
            app=app, session=str(s), turn=t, context_tokens=1500 * t, faithfulness=0.9 - fall * t + 0.1 * (s % 2)
        )
        for s in range(sessions)
        for t in range(1, 6)
    )


@pytest.mark.req("R30")
def test_a_fall_is_a_pattern_and_no_cause() -> None:
    lines = said(report())

    assert any(line.startswith("shop: faithfulness falls by 0.1") and "per turn" in line for line in lines)
    assert all(line.endswith("A pattern, not a cause.") for line in lines)


def test_too_few_sessions_say_how_many_and_what_to_do() -> None:
    (line,) = said(report(sessions=30))

    assert "30 of 50" in line
    assert "--by session" in line
    assert said(report(fall=0.0)) == ["No measure falls inside sessions beyond chance."]


def test_the_picture_draws_every_curve_and_survives_hostile_names() -> None:
    found = report(app='<script>"&\u202eb')
    picture = ET.fromstring(fatigue_picture.svg(found))

    points = sum(len(curve.points) for curve in found.curves)
    assert points == 4 + 3
    assert len(picture.findall(f".//{SVG}circle")) == points
    assert not picture.findall(f".//{SVG}script")
    assert "\u202e" not in fatigue_picture.svg(found)


def test_a_picture_without_curves_says_why() -> None:
    assert "Not enough sessions" in fatigue_picture.svg(report(sessions=3))
