"""Parts of the trace page: the judge's rows, the thresholds, the links, and how model text is shown."""

from __future__ import annotations

import msgspec
import pytest

from aftercheck_schemas import ClaimJudgement, Judgement
from aftercheck_worker.api.ui import judging, view
from aftercheck_worker.api.ui.links import Link, links
from aftercheck_worker.api.ui.thresholds import Cut, cuts


def row(criterion: str, repeat: int, score: float | None, body: object = None, late: bool = False) -> object:
    return {
        "criterion": criterion,
        "repeat": repeat,
        "score": score,
        "body": body or {},
        "late": late,
        "run_id": "online",
    }


@pytest.mark.req("R24", "R47")
def test_repeats_are_shown_as_minimum_and_median() -> None:
    claim = ClaimJudgement(claim_id="c1", status="contradicted", statuses=("contradicted", "supported"))
    body = msgspec.to_builtins(Judgement(model="judge", claims=(claim,), faithfulness=(0.9, 0.2, 0.6), repeats=3))
    rows = [row("faithfulness", n, score, body if n == 0 else None) for n, score in enumerate((0.9, 0.2, 0.6))]
    found = judging.read([*rows, row("context_relevance", 0, 0.5, late=True)])
    assert found is not None
    assert [(one.criterion, one.low, one.median) for one in found.repeats] == [
        ("faithfulness", 0.2, 0.6),
        ("context_relevance", 0.5, 0.5),
    ]
    assert found.late
    assert found.of("c1") == claim
    assert found.of("c2") is None


@pytest.mark.req("R48")
def test_a_judge_that_was_not_asked_is_no_score() -> None:
    assert judging.read([]) is None
    assert judging.read([row("verifier", 0, None, {"evaluation": {}})]) is None


def test_a_judgement_of_another_release_leaves_its_scores() -> None:
    found = judging.read([row("faithfulness", 0, 0.5, {"model": 7})])
    assert found is not None
    assert (found.judgement, found.repeats[0].low, found.of("c1")) == (None, 0.5, None)


@pytest.mark.req("R25")
def test_a_claim_type_has_its_own_cut() -> None:
    spec = {"parameters": {"thresholds": {"support": 0.5, "margin": 0.0, "by_type": {"number": 0.8}, "new": 1}}}
    assert cuts(spec, "number") == [Cut(name="supported from", value=0.8)]
    assert cuts(spec, "fact") == [Cut(name="supported from", value=0.5)]
    assert cuts({"parameters": {"supported_from": 0.65, "top": 3}}, "fact") == [
        Cut(name="supported from", value=0.65)
    ]
    assert cuts({}, "fact") == cuts({"parameters": [1]}, "fact") == []


@pytest.mark.req("R5")
def test_links_are_filled_and_only_the_web_is_linked() -> None:
    found = links(
        "Tempo=https://g.example/explore?traceID={trace_id}&app={app} "
        "https://l.example/{span_id} javascript:alert(1) x=y",
        trace_id="ab",
        span_id="cd",
        app="a b&c",
    )
    assert found == [
        Link(name="Tempo", url="https://g.example/explore?traceID=ab&app=a%20b%26c"),
        Link(name="trace viewer", url="https://l.example/cd"),
    ]
    assert links("", trace_id="ab") == []


@pytest.mark.req("S32")
def test_redacted_values_and_hidden_characters_are_marked() -> None:
    shown = view.shown("<EMAIL_91fe02> \u202e<b> <EMAIL_zz> <script_000000>")
    assert '<span class="redacted" title="email: replaced before it was stored">&lt;EMAIL_91fe02&gt;</span>' in shown
    assert '<span class="hidden" title="hidden character">U+202E</span>&lt;b&gt;' in shown
    assert "&lt;EMAIL_zz&gt; &lt;script_000000&gt;</bdi>" in shown
    assert view.redactions(["<EMAIL_91fe02><EMAIL_91fe02>", "<API_KEY_000000> \u202e"]) == {"email": 2, "api key": 1}
