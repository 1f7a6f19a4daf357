"""The privacy review: a disagreement becomes a regression case in the golden format, by hand (R6, R38, R46)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Path, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from aftercheck_schemas import Interaction
from aftercheck_schemas.golden import EvidenceRecord, ExpectedClaim, GoldenCase, GoldenPassage
from aftercheck_worker.api import redacting
from aftercheck_worker.api.problem import Problem
from aftercheck_worker.api.state import state_of
from aftercheck_worker.api.ui import view
from aftercheck_worker.api.ui.session import Guarded, Viewer, Viewing, changing
from aftercheck_worker.storage import corrections

router: Final = APIRouter()
Number = Annotated[int, Path(ge=1, lt=2**63)]
Clean = Callable[[str], str]
MAX_CLAIMS: Final = 40


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A claim in the form. `source` is the place of a passage, -1 for none."""

    text: str
    said: str
    status: str = ""
    source: int = -1
    span: str = ""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in the form."""

    query: str
    answer: str
    passages: list[str]
    claims: list[Line]
    expected: str = "ungrounded"


class Refused(Exception):
    """The form cannot become a case; the text says why and how to mend it."""


@router.get("/ui/review/{evaluation_id}")
def review(request: Request, who: Viewing, evaluation_id: Number) -> HTMLResponse:
    """Show the text that would become a regression case, redacted as far as patterns go."""
    changing(who)
    body, found = _stored(request, who, evaluation_id)
    clean = _cleaner(request, body)
    places = {passage.source_id: place for place, passage in enumerate(body.passages)}
    claims = [
        Line(
            text=clean(one.text),
            said=one.status,
            source=places.get(one.source_id, -1),
            span=clean(one.span),
        )
        for one in found[:MAX_CLAIMS]
    ]
    draft = Draft(
        query=clean(body.question),
        answer=clean(body.answer),
        passages=[clean(passage.text) for passage in body.passages],
        claims=claims,
    )
    return _page(who, evaluation_id, body, draft)


@router.post("/ui/review/{evaluation_id}")
def reviewed(request: Request, who: Viewing, fields: Guarded, evaluation_id: Number) -> Response:
    """Keep the reviewed text as a regression case, or show the form again with what is wrong."""
    changing(who)
    body, _ = _stored(request, who, evaluation_id)
    draft = _read(fields, body)
    try:
        if fields.get("private") != "none":
            raise Refused("Confirm that no personal data is left in the text.")
        draft, before = _cleaned(draft, _cleaner(request, body)), draft
        if draft != before:
            raise Refused("Some of it still looked personal and has been replaced below: look again.")
        case = _case(draft, body, evaluation_id, who.token.id)
    except Refused as refusal:
        return _page(who, evaluation_id, body, draft, error=str(refusal))
    with state_of(request).postgres() as connection:
        corrections.keep(connection, evaluation_id, case)
    return RedirectResponse("/ui/disagreements", 303)


@router.get("/ui/regressions.jsonl")
def exported(request: Request, who: Viewing) -> Response:
    """Return the reviewed cases, one per line, in the golden format."""
    with state_of(request).postgres() as connection:
        cases = corrections.cases(connection, who.token.tenant)
    lines = b"".join(msgspec.json.encode(case) + b"\n" for case in cases)
    return Response(lines, media_type="application/x-ndjson")


def _cleaner(request: Request, body: Interaction) -> Clean:
    """Replaces what looks personal, with the placeholders that the SDK gives in this trace."""
    redactor = redacting.redactor(state_of(request).settings, body.app)
    return lambda text: redactor.redact(text, body.trace_id)


def _cleaned(draft: Draft, clean: Clean) -> Draft:
    return msgspec.structs.replace(
        draft,
        query=clean(draft.query),
        answer=clean(draft.answer),
        passages=[clean(text) for text in draft.passages],
        claims=[msgspec.structs.replace(one, text=clean(one.text), span=clean(one.span)) for one in draft.claims],
    )


def _page(who: Viewer, number: int, body: Interaction, draft: Draft, *, error: str = "") -> HTMLResponse:
    return view.page(
        "review.html",
        status=422 if error else 200,
        title="Privacy review",
        who=who,
        number=number,
        body=body,
        draft=draft,
        error=error,
    )


def _stored(request: Request, who: Viewer, number: int) -> tuple[Interaction, list[corrections.Said]]:
    with state_of(request).postgres() as connection:
        body = corrections.interaction(connection, who.token.tenant, number)
        claims = corrections.claims(connection, number) if body else []
    if body is None:
        raise Problem(404, "unknown_answer", "there is no such answer, or its text is gone")
    return body, claims


def _read(fields: Mapping[str, str], body: Interaction) -> Draft:
    def place(word: str) -> int:
        return int(word) if word.isdecimal() and len(word) < 6 and int(word) < len(body.passages) else -1

    def text(name: str) -> str:
        return fields.get(name, "").replace("\r\n", "\n")

    return Draft(
        query=text("query"),
        answer=text("answer"),
        passages=[text(f"passage-{n}") for n in range(len(body.passages))],
        claims=[
            Line(
                text=text(f"claim-{n}"),
                said=fields.get(f"said-{n}", ""),
                status=fields.get(f"status-{n}", ""),
                source=place(fields.get(f"source-{n}", "")),
                span=text(f"span-{n}"),
            )
            for n in range(MAX_CLAIMS)
            if f"claim-{n}" in fields
        ],
        expected="grounded" if fields.get("expected") == "grounded" else "ungrounded",
    )


def _case(draft: Draft, body: Interaction, number: int, reviewer: str) -> GoldenCase:
    now = int(time.time())
    claims = [_claim(line, draft, body, reviewer, now) for line in draft.claims if line.status]
    bad = any(claim.status != "supported" for claim in claims)
    if claims and bad != (draft.expected == "ungrounded"):
        raise Refused(
            "Outcome and claims contradict each other: an answer is grounded when every claim is supported."
        )
    return GoldenCase(
        id=f"feedback-{number}",
        query=draft.query,
        answer=draft.answer,
        context=tuple(
            GoldenPassage(
                source_id=passage.source_id, text=text, kind=passage.kind, trust=passage.trust, ok=passage.ok
            )
            for passage, text in zip(body.passages, draft.passages, strict=True)
        ),
        expected="grounded" if draft.expected == "grounded" else "ungrounded",
        claims=tuple(claims),
        slices=(f"app:{body.app}",),
        reviewer=reviewer,
        verified_at=now,
        source="feedback",
    )


def _claim(line: Line, draft: Draft, body: Interaction, reviewer: str, now: int) -> ExpectedClaim:
    if line.text not in draft.answer:
        raise Refused(f"The claim {line.text[:80]!r} does not stand in the answer: copy its words as they are now.")
    records: tuple[EvidenceRecord, ...] = ()
    if line.source >= 0 and line.span:
        if line.span not in draft.passages[line.source]:
            raise Refused(f"The evidence {line.span[:80]!r} does not stand in its passage: copy the exact words.")
        records = (
            EvidenceRecord(
                document=body.passages[line.source].source_id,
                span=line.span,
                revision=body.versions.corpus,
                verified_at=now,
                reviewer=reviewer,
            ),
        )
    try:
        return msgspec.convert(
            {"text": line.text, "status": line.status, "evidence": msgspec.to_builtins(records)}, ExpectedClaim
        )
    except msgspec.ValidationError:
        raise Refused("A claim has an unknown status.") from None
