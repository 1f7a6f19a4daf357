"""What a deterministic check found about one claim, and the inputs of the checks."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from aftercheck_schemas.evaluation import Evidence
from aftercheck_schemas.vocabulary import ClaimStatus, EvidenceKind

Effect = Literal["support", "cap", "escalate", "convict"]
"""`support`: evidence for the claim. `cap`: the claim cannot be supported. `escalate`: doubt, needs a surer score.
`convict`: decides the status; only with an aligned anchor."""

Kind = Literal[
    "number",
    "date",
    "quote",
    "polarity",
    "quantifier",
    "antonym",
    "entity",
    "identifier",
    "code",
    "action",
    "doctrine",
    "table",
    "ambiguity",
    "value",
]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding.

    Attributes:
        kind: the check. effect: what it may do to the verdict.
        status: the status that a `cap` or `convict` leads to; None for the others.
        reason: short code stored with the verdict, such as `number_mismatch`.
        evidence: verbatim spans that the finding rests on.
        strength: 0..1, how sure the check is of itself.
    """

    kind: Kind
    effect: Effect
    reason: str
    status: ClaimStatus | None = None
    evidence: tuple[Evidence, ...] = ()
    strength: float = 1.0


class Source(Protocol):
    """A text of the evidence pool, as the checks see it."""

    @property
    def source_id(self) -> str:
        """Id of the source."""
        ...

    @property
    def text(self) -> str:
        """The whole text."""
        ...

    @property
    def kind(self) -> EvidenceKind:
        """Kind of evidence."""
        ...

    @property
    def name(self) -> str:
        """Tool name or title."""
        ...

    def span(self, start: int, end: int, score: float = 0.0) -> Evidence:
        """Return a verbatim span as evidence."""
        ...
