"""The evidence pool of one answer: what may support a claim, what may only speak against it, what is missing (R8).

The assistant's own earlier turns are no evidence. A failed tool supports nothing but tells that an action failed.
What the user stated is evidence of what the user said. Everything keeps its offsets: spans are verbatim.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from aftercheck_schemas.evaluation import Evidence
from aftercheck_schemas.interaction import Interaction, Passage
from aftercheck_schemas.vocabulary import EvidenceKind
from aftercheck_worker.text.language import detect
from aftercheck_worker.text.lexicon import load
from aftercheck_worker.text.sentences import sentences
from aftercheck_worker.text.tokens import words

TOOL_KINDS: Final[frozenset[EvidenceKind]] = frozenset({"tool_result", "action_log", "telemetry"})
USER_TRUST: Final = 0.5
MIN_STATEMENT_WORDS: Final = 4

_USER_TURN: Final = re.compile(
    r"^\s*(?:user|human|customer|użytkownik|користувач|пользователь|benutzer|nutzer)\s*:\s*", re.IGNORECASE
)
_FAILED: Final = re.compile(
    r"(?:->|=>|→|:)\s*\"?(?:error|failed|failure|exception|denied|forbidden|timed? ?out|unauthori[sz]ed)\b"
    r"|^\s*(?:error|failed|traceback|exception)\b"
    r"|[\"']?(?:status|success|ok|result|code)[\"']?\s*[:=]\s*[\"']?(?:error|fail\w*|false|[45]\d\d)\b",
    re.IGNORECASE,
)


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One text of the pool.

    Attributes:
        source_id: the passage's id; `question` and `history:N` (1-based) for what the user said.
        failed: a tool that did not do its work; speaks only about the failure.
        elided: the text was cut, so that silence proves nothing.
        digest: blake2b-128 hex of the text, the key of every cache.
        group: passages with one group are windows of one document.
    """

    source_id: str
    text: str
    kind: EvidenceKind
    trust: float = 1.0
    failed: bool = False
    elided: bool = False
    name: str = ""
    digest: str = ""

    def span(self, start: int, end: int, score: float = 0.0) -> Evidence:
        """Return a verbatim span as evidence."""
        return Evidence(
            source_id=self.source_id,
            start=start,
            end=end,
            text=self.text[start:end],
            kind=self.kind,
            trust=self.trust,
            score=score,
        )


class EvidencePool(msgspec.Struct, frozen=True, kw_only=True):
    """All texts that a claim may be held against.

    Attributes:
        sources: usable texts in the order of the interaction, user statements last.
        failed: texts of tools that failed.
        missing: the interaction carried passages, but none with any text: a capture fault (`context_missing`).
    """

    sources: tuple[Source, ...] = ()
    failed: tuple[Source, ...] = ()
    missing: bool = False

    @property
    def empty(self) -> bool:
        """No usable evidence from outside the dialogue."""
        return all(source.kind == "user_input" for source in self.sources)

    @property
    def available(self) -> bool:
        """Any text of any origin, failed tools included."""
        return bool(self.sources or self.failed)

    @property
    def kinds(self) -> frozenset[EvidenceKind]:
        """Kinds that have a usable text."""
        return frozenset(source.kind for source in self.sources)

    @property
    def digest(self) -> str:
        """blake2b-128 hex over the digests of all sources, in order."""
        return _digest("\0".join(source.digest for source in (*self.sources, *self.failed)))


def pool(interaction: Interaction) -> EvidencePool:
    """Return the evidence pool. Never raises; blank passages and the assistant's own turns are dropped."""
    usable: list[Source] = []
    failed: list[Source] = []
    for passage in interaction.passages:
        source = _source(passage)
        if source is not None:
            (failed if source.failed else usable).append(source)
    usable += _user_statements(interaction)
    blank = bool(interaction.passages) and not any(p.text.strip() for p in interaction.passages)
    return EvidencePool(sources=tuple(usable), failed=tuple(failed), missing=blank)


def _source(passage: Passage) -> Source | None:
    if not passage.text.strip():
        return None
    kind, trust = passage.kind, passage.trust
    if kind == "prior_assistant":
        if not _USER_TURN.match(passage.text):
            return None
        kind, trust = "user_input", min(trust, USER_TRUST) if trust else USER_TRUST
    broken = not passage.ok or (kind in TOOL_KINDS and bool(_FAILED.search(passage.text[:2000])))
    return Source(
        source_id=passage.source_id,
        text=passage.text,
        kind=kind,
        trust=trust,
        failed=broken,
        elided=passage.elided,
        name=passage.name,
        digest=_digest(passage.text),
    )


def _user_statements(interaction: Interaction) -> Iterator[Source]:
    """The user's turns that state something; a question's presupposition is no evidence."""
    turns = [(f"history:{n}", m.text) for n, m in enumerate(interaction.history, 1) if m.role == "user"]
    for source_id, text in [*turns, ("question", interaction.question)]:
        if text.strip() and _states(text):
            yield Source(source_id=source_id, text=text, kind="user_input", trust=USER_TRUST, digest=_digest(text))


def _states(text: str) -> bool:
    head = text[:4000]
    language = detect(head)
    verbs = frozenset(load(language).finite_verbs)
    for span in sentences(head, language=language):
        sentence = head[span.start : span.end]
        found = words(sentence)
        if "?" in sentence or len(found) < MIN_STATEMENT_WORDS:
            continue
        if any(word.low in verbs for word in found[1:7]):
            return True
    return False


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
