"""What one answer span says: question, answer, and everything the model saw."""

from __future__ import annotations

from typing import Literal

import msgspec

from aftercheck_schemas.trace import Json
from aftercheck_schemas.vocabulary import EvidenceKind, NotAssessableReason, Origin

Role = Literal["system", "user", "assistant", "tool"]

ContextSource = Literal[
    "recorded",
    "prompt_variable",
    "retrieval_in_prompt",
    "tool_results",
    "prompt_block",
    "system_prompt",
    "document_parts",
    "retrieval_only",
    "none",
]
"""Where the passages came from, strongest first (notes on capture, section 4)."""


class Passage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One piece of evidence that the model saw (R10).

    Attributes:
        source_id: name of the source, unique inside the interaction.
        text: never empty.
        trust: 0..1.
        ok: False for a failed tool call, which is no evidence.
        elided: True when the text was cut, so that silence proves nothing.
        name: the tool's name for tool results, a title for documents.
        arguments: the tool's arguments as JSON text.
        at: nanoseconds since the epoch, 0 when unknown.
    """

    source_id: str
    text: str
    kind: EvidenceKind = "context"
    trust: float = 1.0
    ok: bool = True
    elided: bool = False
    name: str = ""
    arguments: str = ""
    at: int = 0


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One earlier turn of the dialogue."""

    role: Role
    text: str


class Versions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Versions of the pipeline that produced the answer (R2, R43). `prompt` falls back to a hash."""

    prompt: str = ""
    retriever: str = ""
    corpus: str = ""
    index: str = ""


class Interaction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The unit of evaluation: one answer span.

    Attributes:
        passages: what the model saw; faithfulness is judged against these only.
        retrieved: documents that were retrieved but are not in the prompt; for context relevance only.
        alternatives: further answers of the same call (n > 1); the verdict is the minimum over all.
        history: earlier user and assistant turns, oldest first.
        rendered: what the user was shown, when the app recorded it and it differs from `answer`.
        parameters: temperature and friends, as recorded.
        turn: 1-based turn inside the session, 0 when unknown.
        call_index: 1-based index of the model call inside its trace.
        context_tokens: input tokens as reported by the provider, 0 when unknown.
        context_confidence: 0..1, how sure we are that `passages` is what the model saw.
        answered_at: end of the answer span, nanoseconds since the epoch.
        user_id: who asked, as the app recorded it (redacted like any text); "" when it did not. Erasure finds it.
        not_assessable: why this span cannot be judged, or None.
    """

    trace_id: str
    span_id: str
    app: str
    environment: str = ""
    origin: Origin = "production"
    question: str = ""
    answer: str = ""
    alternatives: tuple[str, ...] = ()
    rendered: str | None = None
    passages: tuple[Passage, ...] = ()
    retrieved: tuple[Passage, ...] = ()
    history: tuple[Message, ...] = ()
    model: str = ""
    provider: str = ""
    parameters: dict[str, Json] = {}
    versions: Versions = Versions()
    session_id: str = ""
    user_id: str = ""
    turn: int = 0
    call_index: int = 1
    context_tokens: int = 0
    context_source: ContextSource = "none"
    context_confidence: float = 0.0
    answered_at: int = 0
    complete: bool = True
    truncated: bool = False
    not_assessable: NotAssessableReason | None = None
