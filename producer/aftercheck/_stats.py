"""Counters of one process, as values (trust notes 1.3, I1)."""

from __future__ import annotations

from typing import NamedTuple


class Stats(NamedTuple):
    """Counters since the process started (or was forked), in spans; a feedback call counts as one.

    Invariant I1, exact at every moment:
    `finished == not_sampled + enqueued + sum(dropped.values()) + buffered`.

    Attributes:
        finished: spans that ended in this process and feedback calls.
        not_sampled: spans that say nothing of an LLM call (plain HTTP, database), that OpenTelemetry did not
            sample, or that belong to an evaluator.
        enqueued: spans whose stream entry Redis acknowledged.
        dropped: spans lost, by reason (`aftercheck_schemas.vocabulary.DropReason`); reasons with 0 are absent.
        buffered: spans that wait in this process. buffered_bytes: their estimated size.
        traces_dropped: traces that lost at least one span.
        last_error: why the last attempt to reach Redis failed, "" when it worked.
    """

    finished: int = 0
    not_sampled: int = 0
    enqueued: int = 0
    dropped: dict[str, int] = {}  # noqa: RUF012 - never mutated
    buffered: int = 0
    buffered_bytes: int = 0
    traces_dropped: int = 0
    last_error: str = ""


class FlushResult(NamedTuple):
    """What `flush` achieved, in spans.

    Attributes:
        flushed: spans that Redis acknowledged since the previous flush (or since init).
        left: spans that still wait in the process, e.g. because Redis is away.
        dropped: spans lost since the previous flush, by reason.
    """

    flushed: int = 0
    left: int = 0
    dropped: dict[str, int] = {}  # noqa: RUF012 - never mutated
