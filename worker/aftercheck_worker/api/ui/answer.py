"""One answer as its page shows it: text cut at the claims, the chosen claim beside it, its evidence marked below."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from aftercheck_schemas import Interaction, Passage
from aftercheck_schemas.evaluation import ClaimJudgement
from aftercheck_schemas.vocabulary import ClaimStatus
from aftercheck_worker.api.ui import judging, thresholds, view
from aftercheck_worker.api.ui.judging import Opinion
from aftercheck_worker.api.ui.thresholds import Cut
from aftercheck_worker.api.ui.view import MAX_CHARS, Mark, Piece, pieces
from aftercheck_worker.storage.explain import AnswerStory, ClaimStory, EvaluationStory, EvidenceStory

_ORDER: Final = ("contradicted", "not_found", "unclear", "supported")
SHORT: Final = 20_000
"""Characters of a passage that are shown at first; more when evidence lies behind."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A passage with the evidence of the chosen claim marked. `place` counts from 1, in the order the model saw."""

    passage: Passage
    place: int
    pieces: list[Piece]
    cited: bool
    cut: bool


class First(msgspec.Struct, frozen=True, kw_only=True):
    """What the verifier said before the judge."""

    status: ClaimStatus
    confidence: float


class _Routed(msgspec.Struct, frozen=True, kw_only=True):
    """What `storage.judged.Judged.document` keeps and the page shows."""

    first: dict[str, First] = {}


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """The claim that is open.

    Attributes:
        number: 1-based among all claims.
        before, after: ids of the neighbours, "" at the ends. suspect: id of the next claim that is not supported.
        first: the verifier's own verdict where a judge had the last word, None when it was not kept.
        judged: what the judge said of it, None when not asked.
        cuts: the thresholds that were used.
    """

    claim: ClaimStory
    number: int
    before: str
    after: str
    suspect: str
    first: First | None
    judged: ClaimJudgement | None
    cuts: list[Cut]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the template needs of one answer. `found` is the evaluation that counts, None without a verdict."""

    story: AnswerStory
    interaction: Interaction | None
    found: EvaluationStory | None
    others: list[EvaluationStory]
    opinion: Opinion | None
    pieces: list[Piece]
    cut: bool
    chosen: Chosen | None
    claims: list[ClaimStory]
    counts: dict[str, int]
    sources: list[Source]
    places: dict[str, int]
    redacted: dict[str, int]
    details: Mapping[str, object]


def read(story: AnswerStory, *, claim: str, full: bool, spec: Mapping[str, object]) -> Answer:
    """Arrange an answer.

    Args:
        story: as stored.
        claim: id of the chosen claim; "" chooses the worst one.
        full: show texts above 200,000 characters whole.
        spec: what the evaluator's version is the hash of.
    """
    body = None if story.interaction is None else msgspec.convert(story.interaction, Interaction)
    found = story.evaluations[0] if story.evaluations else None
    claims = found.claims if found else []
    opinion = judging.read(found.judgements) if found else None
    text = body.answer if body else ""
    limit = len(text) if full else MAX_CHARS
    chosen = next((one for one in claims if one.claim_id == claim), None) or _worst(claims)
    marks = [_mark(one) for one in claims if one.end <= limit]
    passages = body.passages if body else ()
    sources = [_source(place, passage, chosen, full) for place, passage in enumerate(passages, 1)]
    return Answer(
        story=story,
        interaction=body,
        found=found,
        others=story.evaluations[1:],
        opinion=opinion,
        pieces=pieces(text[:limit], marks),
        cut=len(text) > limit,
        chosen=None if chosen is None else _chosen(chosen, found, opinion, spec),
        claims=sorted(claims, key=_badness),
        counts={word: n for word in _ORDER if (n := sum(one.status == word for one in claims))},
        sources=sorted(sources, key=lambda source: not source.cited),
        places={source.passage.source_id: source.place for source in sources},
        redacted=view.redactions([body.question, body.answer, *(one.text for one in passages)] if body else []),
        details=_details(found),
    )


def _badness(claim: ClaimStory) -> int:
    return _ORDER.index(claim.status) if claim.status in _ORDER else len(_ORDER)


def _worst(claims: list[ClaimStory]) -> ClaimStory | None:
    return min((one for one in claims if one.status in _ORDER), key=_badness, default=None)


def _chosen(
    claim: ClaimStory, found: EvaluationStory | None, opinion: Opinion | None, spec: Mapping[str, object]
) -> Chosen:
    claims = found.claims if found else []
    at = next(place for place, one in enumerate(claims) if one is claim)
    further = [*claims[at + 1 :], *claims[:at]]
    return Chosen(
        claim=claim,
        number=at + 1,
        before=claims[at - 1].claim_id if at else "",
        after=claims[at + 1].claim_id if at + 1 < len(claims) else "",
        suspect=next((one.claim_id for one in further if one.status in _ORDER[:3]), ""),
        first=_first(_details(found), claim.claim_id),
        judged=opinion.of(claim.claim_id) if opinion else None,
        cuts=thresholds.cuts(spec, claim.type),
    )


def _details(found: EvaluationStory | None) -> Mapping[str, object]:
    details = found.details if found else None
    return {} if details is None else msgspec.convert(details, dict[str, object])


def _first(details: Mapping[str, object], claim_id: str) -> First | None:
    try:
        return msgspec.convert(details.get("judge"), _Routed).first.get(claim_id)
    except msgspec.ValidationError:  # no judge, or another release's
        return None


def _mark(claim: ClaimStory) -> Mark:
    status = claim.status or "skipped"
    label = status.replace("_", " ") if claim.status else f"not checked: {claim.skip_reason or 'no verdict'}"
    return Mark(start=claim.start, end=claim.end, name=claim.claim_id, status=status, label=label)


def _source(place: int, passage: Passage, claim: ClaimStory | None, full: bool) -> Source:
    own: list[EvidenceStory] = [] if claim is None else claim.evidence
    marks = [
        Mark(start=one.start, end=one.end, status="evidence", label=f"score {one.score:.2f}")
        for one in own
        if one.source_id == passage.source_id
    ]
    last = max((mark.end for mark in marks), default=0)
    limit = len(passage.text) if full else max(SHORT, last + 500)
    return Source(
        passage=passage,
        place=place,
        pieces=pieces(passage.text[:limit], marks),
        cited=bool(marks),
        cut=len(passage.text) > limit,
    )
