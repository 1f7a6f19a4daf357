"""From a judgement, or its absence, to the final evaluation of an answer that waited for the judge."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from aftercheck_schemas import Claim, Evaluation, EvaluatorFailure, Interaction, Judgement, Verdict
from aftercheck_worker import evaluators
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.judge.crosscheck import crosscheck
from aftercheck_worker.judge.engine import Judge, JudgePlan
from aftercheck_worker.judge.packing import pack, unpack
from aftercheck_worker.models.base import ModelInfo
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages import calibration, scoring, verification
from aftercheck_worker.stages.judging import kinship, prompts, verdicts
from aftercheck_worker.stages.judging.schemas import SCHEMAS
from aftercheck_worker.storage import results
from aftercheck_worker.storage.judged import Judged
from aftercheck_worker.storage.judging import Provisional
from aftercheck_worker.storage.ledger import Work

CODE: Final = (*evaluators.CODE, "judge")
"""Files whose bytes are part of the version of a judged evaluation."""
MAX_CLAIMS: Final = 120
"""Claims of one answer that are judged; the others keep the verifier's verdict and the answer says so (O-47)."""
TRUNCATED: Final = "claims_truncated"
_ALTERNATIVE: Final = re.compile(r"alternative_(\d+)")
_decoder: Final = msgspec.json.Decoder(Interaction)


def read(work: Work) -> Interaction | None:
    """Read the interaction of an answer; None when retention or an erasure has removed it."""
    try:
        return _decoder.decode(work.body) if work.body else None
    except (msgspec.DecodeError, RecursionError):
        return None


def answered(interaction: Interaction, evaluation: Evaluation) -> Interaction:
    """The interaction with the one of its answers that the evaluation is about (n > 1)."""
    found = next((m for label in evaluation.labels if (m := _ALTERNATIVE.fullmatch(label))), None)
    place = int(found.group(1)) - 2 if found else -1
    if not 0 <= place < len(interaction.alternatives):
        return interaction
    return msgspec.structs.replace(interaction, answer=interaction.alternatives[place], alternatives=())


def asked(provisional: Provisional) -> tuple[Claim, ...]:
    """Claims to judge: those that the judge decides, or all of an audited answer; at most MAX_CLAIMS."""
    rules = {verdict.claim_id for verdict in provisional.evaluation.verdicts if verdict.decided_by == "policy"}
    every = provisional.audit or not provisional.claims
    decides = frozenset(provisional.claims)
    wanted = [
        claim
        for claim in provisional.evaluation.claims
        if claim.verifiable and claim.id not in rules and (every or claim.id in decides)
    ]
    wanted.sort(key=lambda claim: claim.id not in decides)
    return tuple(wanted[:MAX_CLAIMS])


async def ask(judge: Judge, interaction: Interaction, provisional: Provisional, plan: JudgePlan) -> Judgement:
    """Judge one answer; its quotes are at the offsets of the whole passages.

    Raises:
        GeneratorError: no reply about the claims.
    """
    answer, claims = answered(interaction, provisional.evaluation), asked(provisional)
    passages = verification.usable(answer.passages)
    packed = pack(passages, claims)
    return unpack(await judge.judge(answer, claims, packed.passages, plan), passages, packed.offsets)


def version(evaluator: Evaluator, judge: ModelInfo, settings: Settings) -> tuple[str, dict[str, object]]:
    """Return the sha256 over the verifier's version and all of the judge that can change a verdict."""
    spec: dict[str, object] = {
        "name": evaluator.name,
        "quality": evaluator.quality,
        "verifier": evaluator.version,
        "judge": judge,
        "prompts": prompts.fingerprint(),
        "schemas": SCHEMAS,
        "routing": {
            "share": settings.judge_share,
            "audit": settings.judge_audit,
            "band": evaluator.band,
            "repeats": settings.judge_repeats,
        },
        "code": evaluators.code(CODE),
    }
    encoded = msgspec.json.encode(spec, order="deterministic")
    plain: dict[str, object] = msgspec.json.decode(encoded, type=dict[str, object])
    return hashlib.sha256(encoded).hexdigest(), plain


def judged(
    interaction: Interaction,
    before: Evaluation,
    judgement: Judgement,
    decides: frozenset[str] | None,
    evaluator: Evaluator,
    name: str | None = None,
) -> tuple[Evaluation, verdicts.Folded]:
    """Fold a judgement into the verifier's evaluation.

    Args:
        interaction: with all its passages.
        before: the verifier's evaluation, grounded or ungrounded.
        judgement: its quotes at the offsets of the whole passages.
        decides: ids of the claims that the judge decides; None for all, empty for an audit.
        evaluator: for the cross-check and the score.
        name: version of the evaluator with its judge; the verifier's own by default.
    """
    answer = answered(interaction, before)
    # A claim beyond MAX_CLAIMS was not asked about: that is no failure of the judge.
    said = frozenset(claim.claim_id for claim in judgement.claims)
    mine = said if decides is None else decides & said
    checked = crosscheck(evaluator.verifier, answer, before.claims, judgement, mine)
    folded = verdicts.fold(before.verdicts, judgement, checked, mine)
    found = scoring.evaluation(
        answer,
        before.claims,
        folded.verdicts,
        identity=evaluator.identity,
        policy=evaluator.policy,
        abstained=False,
        evidence=bool(verification.usable(answer.passages)),
        citations=before.citations,
        self_contradiction=scoring.SELF_CONTRADICTION in before.labels,
        failures=(*before.failures, *(judgement.failures or ()), *_new(folded.failures, judgement.failures)),
        probability=calibration.answer_probability(_probabilities(folded.verdicts), evaluator.answer),
    )
    extra = (*before.labels, *judgement.labels, *kinship.labels(judgement.model, interaction.model))
    if decides and not decides <= {claim.claim_id for claim in judgement.claims}:
        extra = (*extra, TRUNCATED)
    labels = tuple(dict.fromkeys((*found.labels, *extra)))
    decided = msgspec.structs.replace(
        found,
        labels=labels,
        decided_by=folded.decided_by,
        complete=before.complete,
        evaluator_version=name or before.evaluator_version,
    )
    return decided, folded


def finished(
    work: Work,
    interaction: Interaction,
    provisional: Provisional,
    judgement: Judgement,
    evaluator: Evaluator,
    name: str,
) -> results.Finished:
    """A judged answer, ready to be written."""
    before = provisional.evaluation
    decides = frozenset(provisional.claims)
    evaluation, folded = judged(interaction, before, judgement, decides, evaluator, name)
    return results.Finished(
        work=work,
        evaluation=evaluation,
        labels=results.Labels.of(interaction),
        judged=Judged(
            why=provisional.why,
            audit=provisional.audit,
            probability=provisional.probability,
            judgement=judgement,
            verifier_faithfulness=before.faithfulness,
            first=tuple(verdict for verdict in before.verdicts if verdict.claim_id in decides),
            agreed=folded.agreed,
            disagreed=folded.disagreed,
            refused=folded.refused,
        ),
    )


def fallen_back(
    work: Work, interaction: Interaction | None, provisional: Provisional, failure: EvaluatorFailure
) -> results.Finished:
    """An answer whose judge failed: the verifier's evaluation, marked as such. Never a score of the judge's."""
    before = provisional.evaluation
    decides = frozenset(provisional.claims)
    evaluation = msgspec.structs.replace(
        before,
        verdicts=tuple(
            verdicts.fallback(verdict) if verdict.claim_id in decides else verdict for verdict in before.verdicts
        ),
        failures=(*before.failures, failure),
        decided_by="verifier_fallback" if decides else before.decided_by,
    )
    return results.Finished(
        work=work,
        evaluation=evaluation,
        labels=results.Labels.of(interaction) if interaction is not None else results.Labels(),
        judged=Judged(why=provisional.why, audit=provisional.audit, probability=provisional.probability),
    )


def _new(ours: Sequence[EvaluatorFailure], theirs: Sequence[EvaluatorFailure]) -> Sequence[EvaluatorFailure]:
    known = {(failure.evaluator, failure.detail) for failure in theirs}
    return [failure for failure in ours if (failure.evaluator, failure.detail) not in known]


def _probabilities(found: Sequence[Verdict]) -> list[float]:
    return [v.supported_probability for v in found if v.supported_probability is not None]
