"""The format of a golden or regression case: R34's triple with R38's evidence record. One JSON object per line."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from aftercheck_schemas.vocabulary import ClaimStatus, EvidenceKind, Outcome


class GoldenPassage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage of the context."""

    source_id: str
    text: str
    kind: EvidenceKind = "context"
    trust: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    ok: bool = True


class EvidenceRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why the expected verdict is right (R38).

    Attributes:
        document: URL or document id.
        span: the exact words.
        revision: of the document.
        verified_at: seconds since the epoch.
        reviewer: who looked.
    """

    document: str
    span: str
    revision: str = ""
    verified_at: int = 0
    reviewer: str = ""


class ExpectedClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stretch of the answer with the verdict that a person gave it."""

    text: str
    status: ClaimStatus
    evidence: tuple[EvidenceRecord, ...] = ()


class GoldenCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One case: query, context, answer, and what a right evaluator says of it.

    Attributes:
        id: unique in its set.
        expected: the outcome.
        slices: names of R36 and R37, e.g. `language:pl`, `false_premise`.
        source: `curated`, or `feedback` for a confirmed correction.
        verified_at: seconds since the epoch. reviewer: who confirmed it.
    """

    id: str
    query: str
    context: tuple[GoldenPassage, ...]
    answer: str
    expected: Outcome
    claims: tuple[ExpectedClaim, ...] = ()
    slices: tuple[str, ...] = ()
    critical: bool = False
    source: Literal["curated", "feedback"] = "curated"
    reviewer: str = ""
    verified_at: int = 0
