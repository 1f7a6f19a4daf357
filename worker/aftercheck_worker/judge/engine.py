"""One answer before the judge: chunks, repeats, re-asks, and one `Judgement` out (R21-R25).

What cannot be read after its one re-ask is an `EvaluatorFailure` beside the verdicts, never a status.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from aftercheck_schemas import Claim, ClaimJudgement, EvaluatorFailure, Interaction, Judgement, Passage
from aftercheck_worker.judge.tally import Tally
from aftercheck_worker.models.base import Completion, Generator, GeneratorError
from aftercheck_worker.stages.judging import prompts, relevance, repeats
from aftercheck_worker.stages.judging.prompts import Prompt
from aftercheck_worker.stages.judging.relevance import RelevanceScore
from aftercheck_worker.stages.judging.reply import JudgedClaim, ParsedReply, parse_reply
from aftercheck_worker.stages.judging.schemas import SCHEMAS

BASE_TOKENS: Final = 150
TOKENS_PER_CLAIM: Final = 160
TOKENS_PER_PASSAGE: Final = 90
TOKENS_FOR_PARTS: Final = 600

Scored = RelevanceScore | EvaluatorFailure | None


class JudgePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to ask.

    Attributes:
        repeats: independent judgements per claim, each with another order of evidence.
        claims_per_call: claims of one prompt.
        triad: also ask for context and answer relevance.
    """

    repeats: int = 1
    claims_per_call: int = 12
    triad: bool = True


class Judge:
    """Asks one generator.

    Args:
        generator: the back end.
        delimiter: source of fresh delimiters; tests inject a fixed one.
    """

    def __init__(self, generator: Generator, *, delimiter: Callable[[], str] = lambda: secrets.token_hex(16)) -> None:
        self._generator = generator
        self._delimiter = delimiter

    async def judge(
        self, interaction: Interaction, claims: Sequence[Claim], passages: Sequence[Passage], plan: JudgePlan
    ) -> Judgement:
        """Judge one answer.

        Args:
            interaction: question and answer.
            claims: the verifiable claims to judge.
            passages: usable evidence; failed tools and earlier assistant turns are already gone.
            plan: how to ask.

        Returns:
            A judgement; claims without any valid verdict have status None and a failure beside them.

        Raises:
            GeneratorError: no reply about the claims, so that the caller may retry or fall back.
        """
        tally = Tally()
        rounds, context, answer = await asyncio.gather(
            self._rounds(interaction, claims, passages, plan, tally),
            self._context(interaction, passages, plan, tally),
            self._answer(interaction, plan, tally),
        )
        folded = tuple(repeats.majority(claim.id, [found[i] for found in rounds]) for i, claim in enumerate(claims))
        return Judgement(
            model=self._generator.info.name,
            claims=folded,
            faithfulness=repeats.scores(rounds),
            context_relevance=context.score if isinstance(context, RelevanceScore) else None,
            precision_at_k=context.precision_at_k if isinstance(context, RelevanceScore) else (),
            answer_relevance=answer.score if isinstance(answer, RelevanceScore) else None,
            disagreement=repeats.disagreement(folded),
            void_quotes=tally.void_quotes,
            repeats=plan.repeats,
            calls=tally.calls,
            prompt_tokens=tally.prompt_tokens,
            completion_tokens=tally.completion_tokens,
            labels=_labels(interaction, passages),
            failures=(*(s for s in (context, answer) if isinstance(s, EvaluatorFailure)), *_unparsable(folded)),
        )

    async def _rounds(
        self,
        interaction: Interaction,
        claims: Sequence[Claim],
        passages: Sequence[Passage],
        plan: JudgePlan,
        tally: Tally,
    ) -> list[list[JudgedClaim]]:
        """One list of judged claims per repeat, each in the order of `claims`."""
        chunks = [claims[i : i + plan.claims_per_call] for i in range(0, len(claims), plan.claims_per_call)]
        calls = [
            self._chunk(
                interaction.question, chunk, repeats.order_of(passages, interaction.trace_id, repeat), repeat, tally
            )
            for repeat in range(plan.repeats)
            for chunk in chunks
        ]
        found = await asyncio.gather(*calls)
        per = len(chunks)
        return [[judged for part in found[r * per : (r + 1) * per] for judged in part] for r in range(plan.repeats)]

    async def _chunk(
        self, question: str, claims: Sequence[Claim], passages: Sequence[Passage], repeat: int, tally: Tally
    ) -> list[JudgedClaim]:
        """Judge the claims of one prompt; halve them when the reply was cut, ask once more about what is missing."""
        prompt = prompts.faithfulness(question, claims, passages, self._delimiter())
        completion = await self._call(prompt, BASE_TOKENS + TOKENS_PER_CLAIM * len(claims), repeat, tally)
        if completion.cut and len(claims) > 1:
            half = len(claims) // 2
            parts = await asyncio.gather(
                self._chunk(question, claims[:half], passages, repeat, tally),
                self._chunk(question, claims[half:], passages, repeat, tally),
            )
            return [judged for part in parts for judged in part]
        first = _by_claim(parse_reply(completion.text, [claim.id for claim in claims], passages), claims)
        again = [claim for claim in claims if first[claim.id].status is None or first[claim.id].downgraded]
        if again:
            first |= await self._ask_again(question, again, first, passages, repeat, tally)
        tally.void_quotes += sum(judged.void_quotes for judged in first.values())
        return [first[claim.id] for claim in claims]

    async def _ask_again(
        self,
        question: str,
        claims: Sequence[Claim],
        before: dict[str, JudgedClaim],
        passages: Sequence[Passage],
        repeat: int,
        tally: Tally,
    ) -> dict[str, JudgedClaim]:
        """The one re-ask, about these claims only; it says what was wrong. A worse second reply changes nothing."""
        faults = {claim.id: _fault(before[claim.id]) for claim in claims}
        prompt = prompts.faithfulness(question, claims, passages, self._delimiter(), faults)
        completion = await self._call(prompt, BASE_TOKENS + 2 * TOKENS_PER_CLAIM * len(claims), repeat, tally)
        second = _by_claim(parse_reply(completion.text, [claim.id for claim in claims], passages), claims)
        return {key: judged for key, judged in second.items() if judged.status is not None}

    async def _context(
        self, interaction: Interaction, passages: Sequence[Passage], plan: JudgePlan, tally: Tally
    ) -> Scored:
        ranked = interaction.retrieved or tuple(p for p in passages if p.kind in ("context", "knowledge_base"))
        if not plan.triad or not ranked or not interaction.question:
            return None
        return await self._scored(
            lambda faults: prompts.context_relevance(interaction.question, ranked, self._delimiter(), faults),
            BASE_TOKENS + TOKENS_PER_PASSAGE * len(ranked),
            tally,
            lambda text: relevance.context_relevance(text, ranked),
        )

    async def _answer(self, interaction: Interaction, plan: JudgePlan, tally: Tally) -> Scored:
        if not plan.triad or not interaction.question:
            return None
        return await self._scored(
            lambda faults: prompts.answer_relevance(
                interaction.question, interaction.answer, self._delimiter(), faults
            ),
            TOKENS_FOR_PARTS,
            tally,
            lambda text: relevance.answer_relevance(text, interaction.answer),
        )

    async def _scored(
        self,
        build: Callable[[Mapping[str, str]], Prompt],
        max_tokens: int,
        tally: Tally,
        read: Callable[[str], RelevanceScore | EvaluatorFailure],
    ) -> RelevanceScore | EvaluatorFailure:
        """One relevance criterion with its one re-ask; an endpoint's failure is a failure of this criterion only.

        `build` makes a prompt that tells the faults of the last reply. Each has its own delimiter: one that a model
        has seen is not used again.
        """
        prompt = build({})
        try:
            found = read((await self._call(prompt, max_tokens, 0, tally)).text)
            if isinstance(found, EvaluatorFailure):
                again = build({"reply": found.detail})
                found = read((await self._call(again, max_tokens * 2, 0, tally)).text)
        except GeneratorError as error:
            return EvaluatorFailure(
                evaluator=prompt.criterion, reason=f"judge_{error.reason}", detail=str(error)[:200]
            )
        return found

    async def _call(self, prompt: Prompt, max_tokens: int, repeat: int, tally: Tally) -> Completion:
        completion = await self._generator.generate(
            prompt.system, prompt.user, schema=SCHEMAS[prompt.criterion], max_tokens=max_tokens, seed=repeat
        )
        tally.add(completion)
        return completion


def _by_claim(parsed: ParsedReply, claims: Sequence[Claim]) -> dict[str, JudgedClaim]:
    found = {judged.claim_id: judged for judged in parsed.claims}
    return {
        claim.id: found.get(claim.id) or JudgedClaim(claim_id=claim.id, status=None, error=parsed.error)
        for claim in claims
    }


def _fault(judged: JudgedClaim) -> str:
    if judged.downgraded:
        return "none of the quotes stands word for word in its source"
    return judged.error or "missing"


def _unparsable(claims: Sequence[ClaimJudgement]) -> tuple[EvaluatorFailure, ...]:
    return tuple(
        EvaluatorFailure(evaluator="faithfulness", reason="judge_unparsable", detail=claim.claim_id)
        for claim in claims
        if claim.status is None
    )


def _labels(interaction: Interaction, passages: Sequence[Passage]) -> tuple[str, ...]:
    texts = (interaction.question, interaction.answer, *(passage.text for passage in passages))
    return ("injection_suspected",) if prompts.suspicious(*texts) else ()
