"""Whole traces for the page's benchmark: text, five claims with verdicts and evidence, judgements, thumbs."""

from __future__ import annotations

from typing import Final

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import ClaimJudgement, Interaction, Judgement, Passage, Versions
from aftercheck_schemas.vocabulary import ClaimStatus

EVERY: Final = 20
"""One evaluation in so many gets its text: 50,000 of a million, among them half of the flagged ones."""
STATUSES: Final[tuple[ClaimStatus, ...]] = ("supported", "contradicted", "supported", "supported", "not_found")
SENTENCES: Final = (
    "The basic plan costs 12 euro a month and is billed on the first day.",
    "It includes support by telephone at every hour of the day, also at night.",
    "All data is kept for thirty days after the end of the contract, then it is deleted.",
    "Up to two users may share one account; more users need the team plan.",
    "A contract for a year saves ten per cent and brings a free domain.",
)
ANSWER: Final = " ".join(SENTENCES)
PASSAGES: Final = tuple(
    Passage(source_id=f"page-{number}", text=(f"Part {number} of the price list. {sentence} " * 12).strip())
    for number, sentence in enumerate(SENTENCES, 1)
)
STARTS: Final = [ANSWER.index(sentence) for sentence in SENTENCES]
_BODIES: Final = """
INSERT INTO interaction (day, evaluation_id, body)
SELECT day, evaluation_id, %(body)s::jsonb || jsonb_build_object('trace_id', trace_id, 'span_id', span_id)
FROM evaluation WHERE evaluation_id %% %(every)s = 0
"""
_CLAIMS: Final = """
INSERT INTO claim (day, evaluation_id, evaluator_version, claim_id, text, start, "end", type, severity, verifiable)
SELECT day, evaluation_id, evaluator_version, 'c' || place, text, start, start + length(text), 'fact', 'medium', true
FROM evaluation, unnest(%(sentences)s::text[], %(starts)s::int[]) WITH ORDINALITY AS c (text, start, place)
WHERE evaluation_id %% %(every)s = 0
"""
_VERDICTS: Final = """
INSERT INTO verdict (day, evaluation_id, evaluator_version, claim_id, status, confidence, supported_probability,
                     reason, decided_by)
SELECT day, evaluation_id, evaluator_version, 'c' || place, status, 0.9, 0.5, '', 'verifier'
FROM evaluation, unnest(%(statuses)s::text[]) WITH ORDINALITY AS v (status, place)
WHERE evaluation_id %% %(every)s = 0
"""
_EVIDENCE: Final = """
INSERT INTO evidence (day, evaluation_id, evaluator_version, claim_id, position, source_id, kind, trust, start, "end",
                      text, score)
SELECT day, evaluation_id, evaluator_version, 'c' || place, 0, 'page-' || place, 'context', 1, 29,
       29 + length(text), text, 0.9
FROM evaluation, unnest(%(sentences)s::text[]) WITH ORDINALITY AS e (text, place) WHERE evaluation_id %% %(every)s = 0
"""
_JUDGEMENTS: Final = """
INSERT INTO judgement (day, evaluation_id, evaluator_version, criterion, repeat, score, body)
SELECT day, evaluation_id, evaluator_version, criterion, repeat, score,
       CASE WHEN criterion = 'faithfulness' AND repeat = 0 THEN %(judgement)s::jsonb ELSE '{}'::jsonb END
FROM evaluation, (VALUES ('faithfulness', 0, 0.6::float8), ('faithfulness', 1, 0.8), ('faithfulness', 2, 0.6),
                         ('context_relevance', 0, 0.7), ('answer_relevance', 0, 0.9)) AS j (criterion, repeat, score)
WHERE evaluation_id %% %(every)s = 0
"""
_THUMBS: Final = """
INSERT INTO feedback (tenant, trace_id, kind, value, app)
SELECT 'default', trace_id, 'thumb', CASE WHEN evaluation_id %% 3 = 0 THEN -1 ELSE 1 END, app
FROM evaluation WHERE evaluation_id %% 100 = 0
"""


def fill(connection: psycopg.Connection[TupleRow]) -> None:
    """Give one evaluation in `EVERY` its text, verdicts, evidence and judgements, and one in a hundred a thumb."""
    body = Interaction(
        trace_id="",
        span_id="",
        app="shop",
        question="What does the basic plan cost, and what does it include?",
        answer=ANSWER,
        passages=PASSAGES,
        model="model1",
        versions=Versions(prompt="p1", retriever="r1"),
        context_source="recorded",
        context_confidence=1.0,
    )
    judged = tuple(
        ClaimJudgement(
            claim_id=f"c{place}", status=status, confidence=0.8, statuses=(status,) * 3, rationale="As read."
        )
        for place, status in enumerate(STATUSES, 1)
    )
    judgement = Judgement(model="judge", claims=judged, faithfulness=(0.6, 0.8, 0.6), repeats=3, calls=5)
    values = {
        "every": EVERY,
        "body": msgspec.json.encode(body).decode(),
        "judgement": msgspec.json.encode(judgement).decode(),
        "sentences": list(SENTENCES),
        "starts": STARTS,
        "statuses": list(STATUSES),
    }
    for statement in (_BODIES, _CLAIMS, _VERDICTS, _EVIDENCE, _JUDGEMENTS, _THUMBS):
        connection.execute(statement.encode(), values)
    connection.execute("ANALYZE interaction, claim, verdict, evidence, judgement, feedback")
