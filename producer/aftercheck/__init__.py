"""Light SDK inside the app: one call, and every LLM answer is checked after it has left.

Example:
    import aftercheck

    aftercheck.init("finance-rag")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from aftercheck._feedback import feedback
from aftercheck._init import flush, init, stats
from aftercheck._records import record_context, record_output
from aftercheck._stats import FlushResult, Stats
from aftercheck._tags import Scope, current_trace_id, set_session, set_versions
from aftercheck.errors import AftercheckError, ConfigurationError

if TYPE_CHECKING:
    from aftercheck._monitor import Answer, GuardedAnswer, Monitor, guard
    from aftercheck._notices import Notices

__version__ = "0.1.0"

__all__ = [
    "AftercheckError",
    "Answer",
    "ConfigurationError",
    "FlushResult",
    "GuardedAnswer",
    "Monitor",
    "Notices",
    "Scope",
    "Stats",
    "current_trace_id",
    "feedback",
    "flush",
    "guard",
    "init",
    "record_context",
    "record_output",
    "set_session",
    "set_versions",
    "stats",
]

_LATER = {
    "Answer": "aftercheck._monitor",
    "GuardedAnswer": "aftercheck._monitor",
    "Monitor": "aftercheck._monitor",
    "guard": "aftercheck._monitor",
    "Notices": "aftercheck._notices",
}
"""The guarded call costs an HTTP client: apps that only send traces do not pay for it."""


def __getattr__(name: str) -> object:
    """Import the guarded call at its first use."""
    if name not in _LATER:
        raise AttributeError(f"module 'aftercheck' has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
