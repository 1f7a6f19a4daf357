"""Citations in the answer: does the cited source exist, and does it, not just another one, back the claim (R10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from aftercheck_schemas.evaluation import CitationFinding, Claim
from aftercheck_worker.stages.checks.alignment import Alignment, Subject
from aftercheck_worker.stages.checks.finding import Source
from aftercheck_worker.text.numerals import agree, compare

ENTAILS: Final = 0.6
FAILS: Final = 0.4
SUPPORTED: Final = 0.5


class Cited(msgspec.Struct, frozen=True, kw_only=True):
    """One citation occurrence: the label as written and the index of its source, None when there is none."""

    label: str
    source: int | None = None


def resolve(claim: Claim, sources: Sequence[Source]) -> tuple[Cited, ...]:
    """Resolve each label by source id, then by title, then by its 1-based place; a URL resolves by prefix."""
    places = {source.source_id.lower(): place for place, source in reversed(list(enumerate(sources)))}
    titles = {source.name.lower(): place for place, source in reversed(list(enumerate(sources))) if source.name}
    out: list[Cited] = []
    for label in claim.citations:
        low = label.lower()
        place = places.get(low, titles.get(low))
        if place is None and low.isascii() and low.isdigit() and len(low) < 7 and 1 <= int(low) <= len(sources):
            place = int(low) - 1
        out.append(Cited(label=label, source=place))
    return tuple(out)


def judge(
    subject: Subject, alignment: Alignment, cited: Sequence[Cited], support: Sequence[float | None] = ()
) -> tuple[CitationFinding, ...]:
    """Say for each citation whether its source entails the claim.

    Args:
        subject: the claim.
        alignment: the pool's lines.
        cited: the result of `resolve`.
        support: calibrated probability that the cited source alone supports the claim, where a verifier gave one;
            without it the share of the claim's terms and numbers decides, and the middle stays None.
    """
    out: list[CitationFinding] = []
    for number, citation in enumerate(cited):
        if citation.source is None:
            out.append(CitationFinding(claim_id=subject.claim.id, label=citation.label))
            continue
        given = support[number] if number < len(support) else None
        entails = (
            _entails(subject, alignment, citation.source)
            if given is None
            else _by_score(subject, alignment, citation.source, given)
        )
        source = alignment.sources[citation.source]
        out.append(
            CitationFinding(
                claim_id=subject.claim.id,
                label=citation.label,
                source_id=source.source_id,
                exists=True,
                entails=entails,
            )
        )
    return tuple(out)


def _by_score(subject: Subject, alignment: Alignment, source: int, given: float) -> bool | None:
    if not _numbers_held(subject, alignment, source):
        return False
    return given >= SUPPORTED


def _entails(subject: Subject, alignment: Alignment, source: int) -> bool | None:
    lines = [line for line in alignment.lines if line.source == source]
    held = frozenset[str]().union(*(line.terms for line in lines)) if lines else frozenset[str]()
    share = len(subject.terms & held) / max(1, len(subject.terms))
    if not _numbers_held(subject, alignment, source) or share < FAILS:
        return False
    return True if share >= ENTAILS else None


def _numbers_held(subject: Subject, alignment: Alignment, source: int) -> bool:
    lines = [line for line in alignment.lines if line.source == source]
    quantities = [q for line in lines for q in line.numerals.quantities]
    moments = [m for line in lines for m in line.numerals.moments]
    return all(any(compare(own, q) == "equal" for q in quantities) for own in subject.numerals.quantities) and all(
        any(agree(own, m) == "equal" for m in moments) for own in subject.numerals.moments
    )
