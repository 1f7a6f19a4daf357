"""Session and versions of the current request: context variables, written on spans as they start."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, Self

from opentelemetry import trace

from aftercheck._guard import never_raises

if TYPE_CHECKING:
    from opentelemetry.trace import Span

SESSION_ID = "aftercheck.session.id"
SESSION_TURN = "aftercheck.session.turn"
VERSION_PREFIX = "aftercheck.version."
MAX_TAG_CHARS = 200


class Tags(NamedTuple):
    """Attributes for all spans of one trace, or of one context when `trace_id` is 0."""

    trace_id: int
    attributes: dict[str, str | int]


_current: ContextVar[Tags | None] = ContextVar("aftercheck_tags", default=None)


class Scope:
    """What `set_session` and `set_versions` return: leave it alone, or use it as a context manager.

    Inside a span the tags belong to that span's trace and can reach no other request. Outside a span they stay in
    the current context (thread or task); there `with aftercheck.set_session(...)` ends them with the request.
    """

    __slots__ = ("_before",)

    def __init__(self, before: Tags | None) -> None:
        self._before = before

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Put back what was set before."""
        _current.set(self._before)


def current_trace_id() -> str | None:
    """Trace id of the current span, 32 hex digits; None outside a span. Give it to `feedback` later."""
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else None


def set_session(session_id: str, turn: int | None = None) -> Scope:
    """Say which conversation the current request belongs to (fatigue metrics, R30).

    Args:
        session_id: any stable id, cut at 200 characters; personal data in it is replaced by a placeholder.
        turn: 1-based turn inside the session.
    """
    return _set_session(session_id, turn) or Scope(_current.get())


@never_raises(None)
def _set_session(session_id: str, turn: int | None) -> Scope:
    attributes: dict[str, str | int] = {SESSION_ID: str(session_id)[:MAX_TAG_CHARS]}
    if turn is not None:
        attributes[SESSION_TURN] = int(turn)
    return _put(attributes)


def set_versions(
    *, prompt: str | None = None, retriever: str | None = None, corpus: str | None = None, index: str | None = None
) -> Scope:
    """Say which versions of the pipeline produce the answer (R2, R43); they slice the dashboards.

    Without a prompt version the worker uses a hash of the system prompt.
    """
    given = {"prompt": prompt, "retriever": retriever, "corpus": corpus, "index": index}
    return _set_versions(given) or Scope(_current.get())


@never_raises(None)
def _set_versions(given: dict[str, str | None]) -> Scope:
    return _put({VERSION_PREFIX + k: str(v)[:MAX_TAG_CHARS] for k, v in given.items() if v is not None})


def apply(span: Span, trace_id: int) -> None:
    """Write the current tags on a span that starts; called for every span, so the empty case comes first."""
    tags = _current.get()
    if tags is not None and tags.trace_id in (0, trace_id):
        for name, value in tags.attributes.items():
            span.set_attribute(name, value)


def _put(attributes: dict[str, str | int]) -> Scope:
    span = trace.get_current_span()
    context = span.get_span_context()
    trace_id = context.trace_id if context.is_valid else 0
    before = _current.get()
    kept = before.attributes if before is not None and before.trace_id in (0, trace_id) else {}
    _current.set(Tags(trace_id, {**kept, **attributes}))
    if span.is_recording():
        for name, value in attributes.items():
            span.set_attribute(name, value)
    return Scope(before)
