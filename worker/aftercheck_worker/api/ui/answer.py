"""One answer as its page shows it: text cut at the claims, the chosen claim's evidence marked in its passages."""

from __future__ import annotations

import msgspec

from aftercheck_schemas import Interaction, Passage
from aftercheck_worker.api.ui.view import MAX_CHARS, Mark, Piece, pieces
from aftercheck_worker.storage.explain import AnswerStory, ClaimStory, EvaluationStory


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A passage with the evidence of the chosen claim marked."""

    passage: Passage
    pieces: list[Piece]
    cited: bool
    cut: bool


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the template needs of one answer. `found` is the evaluation that counts, None without a verdict."""

    story: AnswerStory
    interaction: Interaction | None
    found: EvaluationStory | None
    others: list[EvaluationStory]
    pieces: list[Piece]
    cut: bool
    claim: ClaimStory | None
    sources: list[Source]
    redacted: int


def read(story: AnswerStory, *, claim: str, full: bool) -> Answer:
    """Arrange an answer.

    Args:
        story: as stored.
        claim: id of the chosen claim; "" chooses the worst one.
        full: show texts above 200,000 characters whole.
    """
    body = None if story.interaction is None else msgspec.convert(story.interaction, Interaction)
    found = story.evaluations[0] if story.evaluations else None
    claims = found.claims if found else []
    text = body.answer if body else ""
    limit = len(text) if full else MAX_CHARS
    chosen = next((one for one in claims if one.claim_id == claim), None) or _worst(claims)
    marks = [_mark(one) for one in claims if one.end <= limit]
    sources = [] if body is None else [_source(passage, chosen, full) for passage in body.passages]
    return Answer(
        story=story,
        interaction=body,
        found=found,
        others=story.evaluations[1:],
        pieces=pieces(text[:limit], marks),
        cut=len(text) > limit,
        claim=chosen,
        sources=sorted(sources, key=lambda source: not source.cited),
        redacted=text.count("<EMAIL_") + text.count("<PHONE_") + text.count("<NAME_"),
    )


_ORDER = ("contradicted", "not_found", "unclear", "supported")


def _worst(claims: list[ClaimStory]) -> ClaimStory | None:
    judged = [one for one in claims if one.status in _ORDER]
    return min(judged, key=lambda one: _ORDER.index(one.status or "supported"), default=None)


def _mark(claim: ClaimStory) -> Mark:
    status = claim.status or "skipped"
    label = status.replace("_", " ") if claim.status else f"not checked: {claim.skip_reason or 'no verdict'}"
    return Mark(start=claim.start, end=claim.end, name=claim.claim_id, status=status, label=label)


def _source(passage: Passage, claim: ClaimStory | None, full: bool) -> Source:
    own = [] if claim is None else [one for one in claim.evidence if one.source_id == passage.source_id]
    marks = [Mark(start=one.start, end=one.end, status="evidence", label=f"score {one.score:.2f}") for one in own]
    last = max((mark.end for mark in marks), default=0)
    limit = len(passage.text) if full else max(20_000, last + 500)
    return Source(
        passage=passage,
        pieces=pieces(passage.text[:limit], marks),
        cited=bool(marks),
        cut=len(passage.text) > limit,
    )
