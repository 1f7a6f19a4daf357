"""Stored answers as a real fleet leaves them: several claims, a judge, redacted values, versions, two windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import psycopg
from psycopg.rows import TupleRow

from aftercheck_schemas import ClaimJudgement, Evidence, Judgement, Passage, Versions
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.storage import database, evaluator

Store = Callable[..., str]

QUESTION = "What does the basic plan cost, and can <NAME_0a1b2c> at <EMAIL_91fe02> have the yearly one?"
WRONG = "The basic plan costs 15 euro a month."
ANSWER = (
    f"{WRONG} Support by mail is part of the plan. Data is kept for thirty days after the end of the contract. "
    "<EMAIL_91fe02> has two users today. A contract for a year brings a free domain."
)
PASSAGES = (
    Passage(
        source_id="prices.md",
        text="Plans and prices, valid from March. The basic plan costs 12 euro a month and is billed on the first "
        "day. A contract for a year saves ten per cent against paying by the month.",
    ),
    Passage(
        source_id="support.md",
        text="Support by mail is part of every plan. All data is kept for thirty days after the end of the contract.",
        trust=0.9,
    ),
    Passage(
        source_id="lookup_account",
        kind="tool_result",
        name="lookup_account",
        text="The account of <EMAIL_91fe02> has two users today. Its plan is the basic plan.",
    ),
)
VERSIONS = Versions(prompt="support-v7", retriever="bge-small-2", corpus="2026-11-30", index="faiss-41")


def plans(store: Store, database_url: str, verifier: Evaluator, *, app: str = "support-bot") -> str:
    """Store an answer of five claims that the shipped verifier checked and a judge looked at; return the trace id."""
    trace_id = store(
        answer=ANSWER,
        question=QUESTION,
        passages=PASSAGES,
        judge=verifier,
        app=app,
        model="small-model-2",
        versions=VERSIONS,
        parameters={"temperature": 0.2},
        session_id="s-204",
        turn=3,
    )
    with database.connect(database_url, name="test") as connection:
        evaluator.remember(connection, name=verifier.name, version=verifier.version, spec=verifier.spec)
        judged(connection, trace_id)
    return trace_id


def judged(connection: psycopg.Connection[TupleRow], trace_id: str) -> None:
    """Keep a judgement of a trace's only answer as the judge's worker does."""
    row = connection.execute(
        "SELECT day, evaluation_id, evaluator_version FROM evaluation WHERE trace_id = %s AND run_id = 'online'",
        (trace_id,),
    ).fetchone()
    assert row is not None
    claims = connection.execute("SELECT claim_id, text FROM claim WHERE evaluation_id = %s", (row[1],)).fetchall()
    connection.execute(
        "UPDATE evaluation SET details = coalesce(details, '{}') || %s::jsonb WHERE evaluation_id = %s",
        ('{"judge": {"why": "band", "first": {"c2": {"status": "unclear", "confidence": 0.55}}}}', row[1]),
    )
    connection.execute(
        "UPDATE verdict SET decided_by = 'judge' WHERE evaluation_id = %s AND claim_id = 'c2'", (row[1],)
    )
    judgement = opinion([(str(name), str(text)) for name, text in claims])
    scores: Sequence[tuple[str, int, float | None]] = [
        *(("faithfulness", place, score) for place, score in enumerate(judgement.faithfulness)),
        ("context_relevance", 0, judgement.context_relevance),
        ("answer_relevance", 0, judgement.answer_relevance),
    ]
    for criterion, place, score in scores:
        body = msgspec.json.encode(judgement) if (criterion, place) == ("faithfulness", 0) else b"{}"
        connection.execute(
            "INSERT INTO judgement (day, evaluation_id, evaluator_version, criterion, repeat, score, body)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s::jsonb)",
            (*row, criterion, place, score, body.decode()),
        )
    connection.commit()


def opinion(claims: Sequence[tuple[str, str]]) -> Judgement:
    """What a judge says of `ANSWER`: the price is contradicted in two of three runs, the rest stands."""
    passage = PASSAGES[0]
    quote = "The basic plan costs 12 euro a month"
    start = passage.text.index(quote)
    refuted = ClaimJudgement(
        claim_id="",
        status="contradicted",
        confidence=0.9,
        statuses=("contradicted", "not_found", "contradicted"),
        evidence=(Evidence(source_id=passage.source_id, start=start, end=start + len(quote), text=quote, score=0.9),),
        rationale="The price list says <b>12</b> euro a month, the answer says 15.",
    )
    plain = ClaimJudgement(claim_id="", status="supported", confidence=0.8, statuses=("supported",) * 3)
    return Judgement(
        model="judge-large",
        claims=tuple(
            msgspec.structs.replace(refuted if text == WRONG else plain, claim_id=name) for name, text in claims
        ),
        faithfulness=(0.8, 0.6, 0.8),
        context_relevance=0.75,
        answer_relevance=1.0,
        disagreement=0.07,
        repeats=3,
        calls=5,
        prompt_tokens=2103,
        completion_tokens=412,
    )


def traffic(database_url: str, *, app: str = "support-bot") -> None:
    """Fill an hour: its last half has a new prompt that invents. A second call changes nothing."""
    with database.connect(database_url, name="test") as connection:
        connection.execute(_TRAFFIC, {"app": app, "count": 210})
        for statement in (_CLAIMS, _VERDICTS, _QUESTIONS):
            connection.execute(statement)
        connection.commit()


def thumbs(database_url: str) -> None:
    """Let users judge what `traffic` made: mostly as the evaluator does, and every tenth grounded answer not."""
    with database.connect(database_url, name="test") as connection:
        connection.execute(_THUMBS)
        connection.execute(_RELEVANCE)
        connection.commit()


_THUMBS = """
INSERT INTO feedback (tenant, trace_id, kind, value, app, comment)
SELECT tenant, trace_id, 'thumb', CASE WHEN hallucinated = (evaluation_id % 10 <> 0) THEN -1 ELSE 1 END, app,
       CASE WHEN evaluation_id % 20 = 0 THEN 'The shop told me otherwise.' END
FROM evaluation WHERE evaluation_id > 900000 AND evaluation_id % 2 = 0 ON CONFLICT DO NOTHING
"""
_RELEVANCE = """
INSERT INTO judgement (day, evaluation_id, evaluator_version, criterion, repeat, score, body)
SELECT day, evaluation_id, evaluator_version, criterion, 0,
       0.5 + CASE WHEN hallucinated THEN 0.0 ELSE 0.2 END + 0.2 * (evaluation_id % 7) / 7, '{}'
FROM evaluation, unnest(ARRAY['context_relevance', 'answer_relevance']) AS criterion
WHERE evaluation_id > 900000 ON CONFLICT DO NOTHING
"""
_TRAFFIC = """
INSERT INTO evaluation (day, evaluation_id, evaluator_version, tenant, trace_id, span_id, app, environment, model,
                        prompt_version, retriever_version, evaluator, origin, weight, outcome, faithfulness,
                        hallucinated, flagged, critical, claims, verifiable, finalised_at)
SELECT current_date, 900000 + n, repeat('5', 64), 'default', md5(n::text), lpad(to_hex(900000 + n), 16, '0'),
       %(app)s, 'production', 'small-model-2', CASE WHEN fresh THEN 'support-v7' ELSE 'support-v6' END, 'bge-small-2',
       'grounding-v1', 'production', 20, CASE WHEN bad THEN 'ungrounded' ELSE 'grounded' END,
       CASE WHEN bad THEN 0.5 ELSE 1 END, bad, bad, 0, 4, 4, now() - make_interval(secs => 20 + 3540.0 * n / 210)
FROM (SELECT n, n < 90 AND n %% 2 = 0 AS fresh, n %% 25 = 0 OR (n < 90 AND n %% 6 = 0) AS bad
      FROM generate_series(1, %(count)s) AS n) AS made ON CONFLICT DO NOTHING
"""
_CLAIMS = """
INSERT INTO claim (day, evaluation_id, evaluator_version, claim_id, text, start, "end", type, severity, verifiable)
SELECT day, evaluation_id, evaluator_version, 'c1',
       (ARRAY['A yearly contract brings a free domain.', 'You can cancel by telephone at any hour.',
              'The team plan costs 19 euro a month.', 'Data is kept for ten years.'])[1 + evaluation_id % 4],
       0, 30, 'fact', 'medium', true
FROM evaluation WHERE evaluation_id > 900000 AND hallucinated ON CONFLICT DO NOTHING
"""
_VERDICTS = """
INSERT INTO verdict (day, evaluation_id, evaluator_version, claim_id, status, confidence, decided_by)
SELECT day, evaluation_id, evaluator_version, 'c1',
       CASE WHEN evaluation_id % 2 = 0 THEN 'contradicted' ELSE 'not_found' END, 0.9, 'verifier'
FROM evaluation WHERE evaluation_id > 900000 AND hallucinated ON CONFLICT DO NOTHING
"""
_QUESTIONS = """
INSERT INTO interaction (day, evaluation_id, body)
SELECT day, evaluation_id, '{"question": "What does the plan include, and for how long?"}'
FROM evaluation WHERE evaluation_id > 900000 ON CONFLICT DO NOTHING
"""
