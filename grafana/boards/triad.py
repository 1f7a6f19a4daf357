"""The RAG triad (R21, R28)."""

from __future__ import annotations

from typing import Final

from grafana import promql
from grafana.board import Dashboard, Panel, Query, Row
from grafana.boards import answers


def _judged(criterion: str, title: str, description: str) -> Panel:
    """One criterion of the triad by who measured it."""
    by = "app, method"
    sums = promql.grown(f"aftercheck_{criterion}_sum", by)
    counts = promql.grown(f"aftercheck_{criterion}_count", by)
    return Panel(
        title=title,
        queries=(Query(promql.over(sums, counts), "{{app}} {{method}}"),),
        description=f"{description} Weighted by 1/(sampling x judging probability); absent without a judge.",
        unit="percentunit",
        limits=promql.SHARE,
        link=True,
    )


CONTEXT: Final = _judged("context_relevance", "Context relevance", "Do the passages help, the first ones most?")
GROUNDED: Final = _judged(
    "groundedness", "Groundedness as judged", "judge: the judge's own; encoder: the verifier's of the same answers."
)
ANSWER: Final = _judged("answer_relevance", "Answer relevance", "Share of the question's parts that are answered.")

TRIAD: Final = Dashboard(
    uid="aftercheck-triad",
    title="aftercheck: RAG triad",
    description="Was the context right, does the answer stand on it, does it answer (R21, R28).",
    rows=(
        Row(
            title="Context: what retrieval gave",
            panels=(
                Panel(
                    title="Retrievals by result",
                    queries=(Query(promql.grown("aftercheck_retrievals_total", "result"), "{{result}}"),),
                    description="empty: no passage. identical: several passages, all the same text.",
                    kind="stacked",
                ),
                Panel(
                    title="Empty or identical",
                    queries=(
                        Query(promql.share("aftercheck_retrievals_total", 'result="empty"', "app"), "{{app}} empty"),
                        Query(
                            promql.share("aftercheck_retrievals_total", 'result="identical"', "app"),
                            "{{app}} identical",
                        ),
                    ),
                    description="EmptyRetrieval and ZeroVectorRetrieval read this.",
                    unit="percentunit",
                    limits=promql.SHARE,
                    line=0.5,
                    link=True,
                ),
                Panel(
                    title="Different questions, same passages",
                    queries=(
                        Query(
                            f"max by (app) (aftercheck_retrieval_same_passages_ratio{{{promql.CHOSEN}}})",
                            "{{app}}",
                        ),
                    ),
                    description="Share of different questions of 30 minutes that got one set of passages: what zero"
                    " vectors look like.",
                    unit="percentunit",
                    limits=promql.SHARE,
                    line=0.5,
                    link=True,
                ),
            ),
        ),
        Row(title="The triad as judged", panels=(CONTEXT, GROUNDED, ANSWER)),
        Row(
            title="Groundedness: does the answer stand on the context?",
            panels=(answers.MEAN, answers.RATE),
        ),
        Row(
            title="Answer: is there one?",
            panels=(
                Panel(
                    title="Abstained",
                    queries=(
                        Query(promql.share("aftercheck_answers_raw_total", 'outcome="abstained"', "app"), "{{app}}"),
                    ),
                    description="Answers that say evidence is lacking, ask back or hand over.",
                    unit="percentunit",
                    limits=promql.SHARE,
                    line=0.5,
                    link=True,
                    width=12,
                ),
                Panel(
                    title="Users' thumbs",
                    queries=(
                        Query(
                            promql.grown("aftercheck_feedback_total", "result", promql.TRAFFIC),
                            "{{result}}",
                        ),
                    ),
                    description="Explicit feedback only. Silence proves nothing.",
                    kind="stacked",
                    width=12,
                ),
            ),
        ),
    ),
)
