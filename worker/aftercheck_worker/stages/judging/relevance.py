"""Context relevance by rank and answer relevance by parts (R21); own scores from the judge's words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from aftercheck_schemas import EvaluatorFailure, Passage
from aftercheck_worker.stages.judging.prompts import neutralise
from aftercheck_worker.stages.judging.quotes import Folded, Foldings, check, fold
from aftercheck_worker.stages.judging.reply import decode_objects

PartStatus = Literal["answered", "not_answered", "declined"]


class RelevanceScore(msgspec.Struct, frozen=True, kw_only=True):
    """A relevance score 0..1 with what it was made from.

    Attributes:
        score: None when nothing could be measured (no passages, or every part declined).
        precision_at_k: share of useful passages (score >= 2) among the first k, for each k from 1.
        grades: 0..3 per passage in rank order, or per part 1 answered / 0 not; None for declined.
    """

    criterion: str
    score: float | None
    precision_at_k: tuple[float, ...] = ()
    grades: tuple[int | None, ...] = ()


class PassageReply(BaseModel):
    """What the judge says of one passage."""

    model_config = ConfigDict(extra="ignore")
    source_id: str
    evidence: str = ""
    reasoning: str = ""
    score: int = Field(ge=0, le=3)


class PartReply(BaseModel):
    """What the judge says of one part of the question."""

    model_config = ConfigDict(extra="ignore")
    part: str = ""
    evidence: str = ""
    reasoning: str = ""
    status: Annotated[PartStatus, BeforeValidator(lambda v: v.strip().lower() if isinstance(v, str) else v)]


def rank_score(grades: Sequence[int]) -> float:
    """Discounted gain against a first passage that answers alone, 0..1.

    The sum of (2^g - 1) / log2(rank + 1) over the passages, divided by 7 (grade 3 at rank 1) and capped at 1. Ten
    passages of which only the eighth answers score 0.32; the answer in the first scores 1 (R21).
    """
    gain: float = sum((2.0**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))
    return min(1.0, gain / 7)


def context_relevance(raw: str, passages: Sequence[Passage]) -> RelevanceScore | EvaluatorFailure:
    """Score the retrieval. A grade above 1 needs a quote that stands in its passage, otherwise it counts as 1."""
    if not passages:
        return RelevanceScore(criterion="context_relevance", score=None)
    sources = {neutralise(passage.source_id): passage for passage in passages}
    folded = Foldings(sources)
    grades: dict[str, int] = {}
    try:
        for item in decode_objects(raw, ("passages",)):
            reply = PassageReply.model_validate(item)
            if reply.source_id in sources:
                found = reply.evidence and check(reply.evidence, reply.source_id, sources, folded)
                grades[reply.source_id] = reply.score if found or reply.score < 2 else 1
    except ValidationError as error:
        return EvaluatorFailure(evaluator="context_relevance", reason="judge_unparsable", detail=str(error)[:200])
    if set(grades) != set(sources):
        missing = ", ".join(sorted(set(sources) - set(grades)))
        return EvaluatorFailure(
            evaluator="context_relevance", reason="judge_unparsable", detail=f"missing: {missing}"[:200]
        )
    ranked = [grades[neutralise(passage.source_id)] for passage in passages]
    useful = [grade >= 2 for grade in ranked]
    precision = tuple(sum(useful[:k]) / k for k in range(1, len(useful) + 1))
    return RelevanceScore(
        criterion="context_relevance", score=rank_score(ranked), precision_at_k=precision, grades=tuple(ranked)
    )


def answer_relevance(raw: str, answer: str) -> RelevanceScore | EvaluatorFailure:
    """Share of the question's parts that are answered; declined parts are not zero, they are left out."""
    try:
        parts = [PartReply.model_validate(item) for item in decode_objects(raw, ("parts",))]
    except ValidationError as error:
        return EvaluatorFailure(evaluator="answer_relevance", reason="judge_unparsable", detail=str(error)[:200])
    if not parts:
        return EvaluatorFailure(evaluator="answer_relevance", reason="judge_unparsable", detail="no parts")
    sources = {"answer": Passage(source_id="answer", text=answer)}
    folded = {"answer": fold(answer)}
    grades = tuple(_grade(part, sources, folded) for part in parts)
    counted = [grade for grade in grades if grade is not None]
    score = sum(counted) / len(counted) if counted else None
    return RelevanceScore(criterion="answer_relevance", score=score, grades=grades)


def _grade(part: PartReply, sources: dict[str, Passage], folded: dict[str, Folded]) -> int | None:
    """1 for a part whose words stand in the answer, 0 for one that is not answered, None for a declined one."""
    if part.status == "declined":
        return None
    return int(part.status == "answered" and bool(part.evidence and check(part.evidence, "answer", sources, folded)))
