"""Deterministic checks (R10, R15): they cap or escalate; they convict only with an aligned anchor."""

from __future__ import annotations

from collections.abc import Sequence

from aftercheck_schemas.evaluation import Claim
from aftercheck_worker.stages.checks import (
    ambiguity,
    comparisons,
    doctrine,
    emptiness,
    identifiers,
    numbers,
    polarity,
    quotes,
    tables,
    verbatim,
)
from aftercheck_worker.stages.checks.alignment import Alignment
from aftercheck_worker.stages.checks.finding import Effect, Finding, Source

__all__ = ["Alignment", "Effect", "Finding", "Source", "run"]


def run(claims: Sequence[Claim], alignment: Alignment, failed: Sequence[Source] = ()) -> list[tuple[Finding, ...]]:
    """Return the findings about each claim, in order. Never raises; cost is linear in claims, not in claims x lines.

    Args:
        claims: verifiable claims of one answer.
        alignment: the pool's lines, built once per answer.
        failed: results of tools that failed: they support nothing, but say that an action failed.
    """
    return [_of(claim, alignment, failed) for claim in claims]


def _of(claim: Claim, alignment: Alignment, failed: Sequence[Source]) -> tuple[Finding, ...]:
    subject = alignment.subject(claim)
    found = [
        *doctrine.check(subject, alignment, failed),
        *quotes.check(subject, alignment),
        *tables.check(subject, alignment),
        *emptiness.check(subject, alignment),
        *comparisons.check(subject, alignment),
        *ambiguity.check(subject, alignment),
        *identifiers.check(subject, alignment),
    ]
    quoted = any(finding.kind == "quote" for finding in found)
    if not quoted:
        found += [*numbers.check(subject, alignment), *polarity.check(subject, alignment)]
        found += verbatim.check(subject, alignment)
    return tuple(found)
