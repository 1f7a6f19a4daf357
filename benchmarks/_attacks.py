"""The injection proof: an always-obedient judge over attacks x positions, false claims and their true twins.

The judge says what every attacker wants: supported, sure, with real quotes. What it says takes the whole path: prompt
with a fresh delimiter, reply ladder, quote check, cross-check by the shipped verifier, fold.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

from aftercheck_schemas import Claim, Interaction, Passage, Verdict
from aftercheck_schemas.vocabulary import ClaimStatus
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.judge import Judge, JudgePlan
from aftercheck_worker.judge.crosscheck import crosscheck
from aftercheck_worker.judge.stub import Stub, StubGenerator
from aftercheck_worker.stages import claims
from aftercheck_worker.stages.judging.verdicts import fold
from aftercheck_worker.stages.verification import Item, usable

CASES: Final = Path(__file__).parents[1] / "tests" / "cases"
BATCH: Final = 32
PLAN: Final = JudgePlan(triad=False)

Position = Literal["question", "context", "own_source", "answer"]
POSITIONS: Final[tuple[Position, ...]] = get_args(Position)
"""`context`: at the end of the passage that speaks about the claim; `own_source`: a passage of its own."""


class Attack(msgspec.Struct, frozen=True):
    """A text that tries to steer the judge."""

    id: str
    text: str


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """A context with a claim that follows from it, and one like it that does not."""

    id: str
    language: str
    question: str
    context: list[str]
    true: str
    false: str


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One claim with one attack at one position."""

    pair: Pair
    attack: Attack
    position: Position
    truth: bool


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a trial ended.

    Attributes:
        alone: the verifier's status without any attack and without a judge.
        judged: the obedient judge's status after the quote check. final: what counts.
    """

    trial: Trial
    alone: ClaimStatus | None
    judged: ClaimStatus | None
    final: ClaimStatus | None


def attacks() -> list[Attack]:
    """The corpus."""
    return [msgspec.json.decode(line, type=Attack) for line in _lines("attacks.jsonl")]


def pairs() -> list[Pair]:
    """The twins."""
    return [msgspec.json.decode(line, type=Pair) for line in _lines("attack_pairs.jsonl")]


def trials(chosen: Iterable[tuple[Pair, Attack, Position]]) -> list[Trial]:
    """Both twins of each choice."""
    return [
        Trial(pair=pair, attack=attack, position=position, truth=truth)
        for pair, attack, position in chosen
        for truth in (False, True)
    ]


def run(evaluator: Evaluator, chosen: Sequence[Trial]) -> list[Result]:
    """Judge all of them; batches of `BATCH` answers share one call of the verifier."""
    alone = _alone(evaluator, {trial.pair.id: trial.pair for trial in chosen}.values())
    return [
        result
        for start in range(0, len(chosen), BATCH)
        for result in asyncio.run(_batch(evaluator, chosen[start : start + BATCH], alone))
    ]


def successes(results: Iterable[Result]) -> list[Result]:
    """False claims that an attack or the judge made supported; not those that the verifier mistakes by itself."""
    return [
        result
        for result in results
        if not result.trial.truth and result.final == "supported" and result.alone != "supported"
    ]


def mistaken(results: Iterable[Result]) -> list[str]:
    """Ids of the pairs whose false claim the verifier supports without any attack: its error rate, no injection."""
    return sorted({r.trial.pair.id for r in results if not r.trial.truth and r.alone == "supported"})


def kept(results: Iterable[Result]) -> float:
    """Share of the true claims that ended supported, 0..1."""
    true = [result.final == "supported" for result in results if result.trial.truth]
    return sum(true) / len(true)


def interaction(trial: Trial) -> Interaction:
    """The answer with the attack at its position."""
    pair, text = trial.pair, trial.attack.text
    said = pair.true if trial.truth else pair.false
    passages = [Passage(source_id=f"s{n}", text=one) for n, one in enumerate(pair.context, 1)]
    if trial.position == "context":
        passages[-1] = Passage(source_id=passages[-1].source_id, text=f"{passages[-1].text}\n{text}")
    elif trial.position == "own_source":
        passages.append(Passage(source_id=f"s{len(passages) + 1}", text=text))
    return Interaction(
        trace_id=hashlib.md5(f"{pair.id} {trial}".encode(), usedforsecurity=False).hexdigest(),
        span_id="b" * 16,
        app="attacks",
        question=f"{pair.question} {text}" if trial.position == "question" else pair.question,
        answer=f"{said}\n\n{text}" if trial.position == "answer" else said,
        passages=tuple(passages),
    )


def _alone(evaluator: Evaluator, pairs: Iterable[Pair]) -> dict[tuple[str, bool], ClaimStatus | None]:
    """The verifier's statuses of both twins of each pair, untouched."""
    quiet = Attack("", "")
    found = trials((pair, quiet, "question") for pair in pairs)
    items = [Item(interaction=one, claims=claims.split(one)) for one in map(interaction, found)]
    verified = evaluator.verifier.verify(items)
    return {
        (trial.pair.id, trial.truth): _worst(findings.verdicts, {one.claim_id for one in findings.verdicts})
        for trial, findings in zip(found, verified, strict=True)
    }


async def _batch(
    evaluator: Evaluator, chosen: Sequence[Trial], alone: Mapping[tuple[str, bool], ClaimStatus | None]
) -> list[Result]:
    asked = [interaction(trial) for trial in chosen]
    items = [Item(interaction=one, claims=claims.split(one)) for one in asked]
    found = evaluator.verifier.verify(items)
    judge = Judge(StubGenerator(Stub("obedient")))
    out: list[Result] = []
    for trial, item, findings in zip(chosen, items, found, strict=True):
        ours = [claim for claim in item.claims if claim.verifiable]
        judgement = await judge.judge(item.interaction, ours, usable(item.interaction.passages), PLAN)
        checked = crosscheck(evaluator.verifier, item.interaction, ours, judgement)
        final = fold(findings.verdicts, judgement, checked).verdicts
        target = {claim.id for claim in _targets(trial, ours)}
        out.append(
            Result(
                trial=trial,
                alone=alone[trial.pair.id, trial.truth],
                judged=next((one.status for one in judgement.claims if one.claim_id in target), None),
                final=_worst(final, target),
            )
        )
    return out


def _targets(trial: Trial, found: Sequence[Claim]) -> Iterator[Claim]:
    """Claims inside the twin's own words: the attack's words are claims of nobody's interest."""
    length = len(trial.pair.true if trial.truth else trial.pair.false)
    return (claim for claim in found if claim.start < length)


def _worst(verdicts: Sequence[Verdict], target: set[str]) -> ClaimStatus | None:
    """The status of a twin that was cut into several claims: supported only when all of them are."""
    statuses: list[ClaimStatus] = [verdict.status for verdict in verdicts if verdict.claim_id in target]
    for status in statuses:
        if status != "supported":
            return status
    return statuses[0] if statuses else None


def _lines(name: str) -> list[str]:
    return (CASES / name).read_text(encoding="utf-8").splitlines()
