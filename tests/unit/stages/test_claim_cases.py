"""The cases from public bug reports through the engine without a model: checks, retrieval, decision, scoring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aftercheck_schemas.evaluation import Evaluation
from aftercheck_schemas.interaction import Interaction, Passage
from aftercheck_schemas.vocabulary import EVIDENCE_KIND_ALIASES, EVIDENCE_KINDS, EvidenceKind
from aftercheck_worker.engine import Engine
from aftercheck_worker.models.containment import ContainmentScorer
from aftercheck_worker.stages import scoring
from aftercheck_worker.stages.claims import abstains, split
from aftercheck_worker.stages.verification import Item, Verifier

CASES = Path(__file__).parents[2] / "cases" / "claims.jsonl"
Case = dict[str, Any]
ROWS: list[Case] = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
NEEDS_MODEL = {
    "fmt-05": "paraphrase against `takes two reviewers`",
    "inf-07": "`did not close` follows from `open since`",
}
NOT_OURS = {"ctx-03": "the app declares that no retrieval belongs to the span; extraction decides that"}


def kind(name: str) -> EvidenceKind:
    if name in EVIDENCE_KIND_ALIASES:
        return EVIDENCE_KIND_ALIASES[name]
    return EVIDENCE_KINDS[EVIDENCE_KINDS.index(name)]  # pyright: ignore[reportArgumentType]


def evaluate(case: Case, verifier: Verifier | None = None) -> Evaluation:
    """Run one case; the engine without a model by default."""
    passages = tuple(
        Passage(
            source_id=c["source_id"],
            kind=kind(c["kind"]),
            text=c["text"],
            trust=c["trust"],
        )
        for c in case["context"]
    )
    item = Interaction(
        trace_id="t", span_id="s", app="a", question=case["query"], answer=case["answer"], passages=passages
    )
    found = split(item)
    (findings,) = (verifier or Engine(ContainmentScorer())).verify([Item(interaction=item, claims=found)])
    texts = {p.source_id: p.text for p in passages} | {"question": item.question}
    for verdict in findings.verdicts:
        assert all(texts[e.source_id][e.start : e.end] == e.text for e in verdict.evidence)
    return scoring.evaluation(
        item,
        found,
        findings.verdicts,
        identity=scoring.Identity(name="engine", version="0", quality="standard"),
        policy=scoring.Policy(),
        abstained=abstains(item.question, item.answer, found),
        evidence=True,
        citations=findings.citations,
        self_contradiction=findings.self_contradiction,
    )


def marked(case: Case) -> Any:
    reason = NEEDS_MODEL.get(case["id"]) or NOT_OURS.get(case["id"])
    return pytest.param(case, id=case["id"], marks=[pytest.mark.xfail(reason=reason, strict=True)] if reason else [])


@pytest.mark.req("R8", "R10", "R11", "R15")
@pytest.mark.parametrize("case", [marked(case) for case in ROWS])
def test_a_reported_case(case: Case) -> None:
    hold(evaluate(case), case)


def hold(evaluation: Evaluation, case: Case) -> None:
    """Outcome, flag and statuses are what the case asks for."""
    expected = case["expected"]
    assert evaluation.outcome == expected["outcome"]
    assert evaluation.flagged == expected["must_flag"]
    if evaluation.outcome != "abstained":
        assert {v.status for v in evaluation.verdicts} == {c["status"] for c in expected["claims"]}
        assert evaluation.faithfulness == pytest.approx(expected["faithfulness"], abs=0.01)
