"""When a trace is ready to be read (architecture.md "Ready"). No signal says that a trace has ended. Pure.

A parentless root and 3 s of quiet (15 s where a chunk came by OTLP: senders batch at 5 s and logs follow); a root
with a remote parent, or none: 30 s of quiet; and after 10 minutes whatever is there, marked incomplete.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from aftercheck_schemas import EntryHeader


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds."""

    quiet: float = 3.0
    quiet_otlp: float = 15.0
    idle: float = 30.0
    longest: float = 600.0


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the headers of a trace's chunks say together.

    Attributes:
        root: a parentless root has come. remote_root: a root with a remote parent has come.
        otlp: a chunk came through the OTLP receiver.
        lossy: spans were dropped on the way.
    """

    root: bool = False
    remote_root: bool = False
    otlp: bool = False
    lossy: bool = False


class Ready(msgspec.Struct, frozen=True):
    """Read the trace now. `complete` is False when something is known to be missing."""

    complete: bool


class Wait(msgspec.Struct, frozen=True):
    """Look again at `until`, seconds on the clock that `readiness` was given."""

    until: float


def seen(headers: Iterable[EntryHeader]) -> Seen:
    """Fold the headers of a trace's chunks."""
    root = remote_root = otlp = lossy = False
    for header in headers:
        root |= header.root and not header.remote_root
        remote_root |= header.remote_root
        otlp |= header.source == "otlp"
        lossy |= header.dropped > 0
    return Seen(root=root, remote_root=remote_root, otlp=otlp, lossy=lossy)


def readiness(facts: Seen, *, first: float, last: float, now: float, patience: Patience) -> Ready | Wait:
    """Decide.

    Args:
        facts: what has come.
        first: arrival of the first chunk, in seconds of the server's clock.
        last: arrival of the newest one.
        now: the same clock.
        patience: the waiting times.
    """
    quiet = patience.idle
    if facts.root:
        quiet = patience.quiet_otlp if facts.otlp else patience.quiet
    if now >= last + quiet:
        return Ready((facts.root or facts.remote_root) and not facts.lossy)
    if now >= first + patience.longest:
        return Ready(False)
    return Wait(min(last + quiet, first + patience.longest))
