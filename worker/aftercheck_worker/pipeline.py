"""The whole flow of one batch: interactions in, evaluations out. The same for Celery, `evaluate`, golden and replay.

claims -> verification -> scoring, each a file in `stages/`; models are called once per batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from aftercheck_schemas import Evaluation, Interaction, Verdict
from aftercheck_schemas.vocabulary import NotAssessableReason
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.stages import calibration, claims, scoring, verification

CHARS_PER_CLAIM: Final = 80


def evaluate_batch(interactions: Sequence[Interaction], evaluator: Evaluator) -> list[Evaluation]:
    """Return one evaluation per interaction, in order.

    Of several answers to one call (n > 1) the worst counts; the label `alternative_<n>` says which it was.
    """
    answers = [(place, answer) for place, i in enumerate(interactions) for answer in _answers(i)]
    found: list[list[Evaluation]] = [[] for _ in interactions]
    for (place, _), evaluation in zip(answers, _evaluate([a for _, a in answers], evaluator), strict=True):
        found[place].append(evaluation)
    return [_worst(evaluations) for evaluations in found]


def estimated_pairs(interaction: Interaction) -> int:
    """Return about how many claim x passage pairs the answer will cost, without splitting it; at least 1."""
    characters = len(interaction.answer) + sum(map(len, interaction.alternatives))
    return (1 + characters // CHARS_PER_CLAIM) * max(1, len(interaction.passages))


def _evaluate(answers: Sequence[Interaction], evaluator: Evaluator) -> list[Evaluation]:
    refused: list[NotAssessableReason | None] = [_not_assessable(answer) for answer in answers]
    items = [
        verification.Item(interaction=answer, claims=claims.split(answer))
        for answer, reason in zip(answers, refused, strict=True)
        if reason is None
    ]
    findings = iter(zip(items, evaluator.verifier.verify(items), strict=True))
    found: list[Evaluation] = []
    for answer, reason in zip(answers, refused, strict=True):
        if reason is not None:
            found.append(scoring.not_assessable(answer, reason, evaluator.identity))
        else:
            item, finding = next(findings)
            found.append(_score(item, finding, evaluator))
    return found


def _score(item: verification.Item, found: verification.Findings, evaluator: Evaluator) -> Evaluation:
    answer = item.interaction
    return scoring.evaluation(
        answer,
        item.claims,
        found.verdicts,
        identity=evaluator.identity,
        policy=evaluator.policy,
        abstained=claims.abstains(answer.question, answer.answer, item.claims),
        evidence=bool(verification.usable(answer.passages)),
        citations=found.citations,
        self_contradiction=found.self_contradiction,
        probability=calibration.answer_probability(_probabilities(found.verdicts), evaluator.answer),
    )


def _probabilities(verdicts: Sequence[Verdict]) -> list[float]:
    return [v.supported_probability for v in verdicts if v.supported_probability is not None]


def _not_assessable(answer: Interaction) -> NotAssessableReason | None:
    if answer.not_assessable is not None:
        return answer.not_assessable
    return None if answer.answer.strip() else "no_answer_text"


def _answers(interaction: Interaction) -> list[Interaction]:
    return [interaction] + [
        msgspec.structs.replace(interaction, answer=text, alternatives=()) for text in interaction.alternatives
    ]


def _worst(evaluations: Sequence[Evaluation]) -> Evaluation:
    worst = max(
        range(len(evaluations)),
        key=lambda n: (
            evaluations[n].hallucinated,
            evaluations[n].flagged,
            evaluations[n].outcome == "ungrounded",
            evaluations[n].risk,
            -n,
        ),
    )
    chosen = evaluations[worst]
    if worst == 0:
        return chosen
    return msgspec.structs.replace(chosen, labels=(*chosen.labels, f"alternative_{worst + 1}"))
