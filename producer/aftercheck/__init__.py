"""Light SDK inside the app: one call, and every LLM answer is checked after it has left.

Example:
    import aftercheck

    aftercheck.init("finance-rag")
"""

from __future__ import annotations

from aftercheck._feedback import feedback
from aftercheck._init import flush, init, stats
from aftercheck._monitor import Answer, GuardedAnswer, Monitor, guard
from aftercheck._notices import Notices
from aftercheck._records import record_context, record_output
from aftercheck._stats import FlushResult, Stats
from aftercheck._tags import Scope, current_trace_id, set_session, set_versions
from aftercheck.errors import AftercheckError, ConfigurationError

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
