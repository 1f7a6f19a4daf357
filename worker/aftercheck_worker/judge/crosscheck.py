"""The cross-check of a judgement: the same verifier on nothing but the sources that the judge quotes (trust S13).

Neither the question nor the dialogue is shown: text that steered the judge must not steer its control.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from aftercheck_schemas import Claim, Interaction, Judgement, Passage, Verdict
from aftercheck_worker.stages.verification import Item, Verifier

NEEDS_QUOTE = frozenset({"supported", "contradicted"})


def crosscheck(
    verifier: Verifier,
    interaction: Interaction,
    claims: Sequence[Claim],
    judgement: Judgement,
    only: frozenset[str] | None = None,
) -> dict[str, Verdict]:
    """Verify each quoted claim against its quoted sources alone, in one call of the verifier.

    Args:
        verifier: the evaluator's.
        interaction: the answer that was judged, with all its passages.
        claims: its claims.
        judgement: with checked quotes.
        only: ids of the claims that the judge decides; None for all. The others cost nothing.

    Returns:
        A verdict by claim id, for claims whose judged status needs a quote and has one.
    """
    known = {claim.id: claim for claim in claims}
    wanted = [
        (known[judged.claim_id], {part.source_id for part in judged.evidence})
        for judged in judgement.claims
        if judged.status in NEEDS_QUOTE
        and judged.evidence
        and judged.claim_id in known
        and (only is None or judged.claim_id in only)
    ]
    if not wanted:
        return {}
    items = [
        Item(interaction=_quoted(interaction, interaction.passages, names), claims=(claim,))
        for claim, names in wanted
    ]
    found = verifier.verify(items)
    return {
        verdict.claim_id: verdict
        for (claim, _), findings in zip(wanted, found, strict=True)
        for verdict in findings.verdicts
        if verdict.claim_id == claim.id
    }


def _quoted(interaction: Interaction, passages: Sequence[Passage], names: set[str]) -> Interaction:
    return msgspec.structs.replace(
        interaction,
        question="",
        history=(),
        retrieved=(),
        alternatives=(),
        passages=tuple(passage for passage in passages if passage.source_id in names),
    )
