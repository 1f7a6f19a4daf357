"""From the Redis stream to the ledger: sample, assemble, extract, hand over (architecture.md "Intake").

`loop` is the process, `sorting` and `reading` decide, `stream`, `buffer` and `cold` are what lies in Redis,
`writer` what goes to Postgres. `run` is what a command calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from threading import Event

from aftercheck_worker.intake.depth import StreamState, intakes, stream_state
from aftercheck_worker.intake.link import Link
from aftercheck_worker.intake.loop import Intake, Send
from aftercheck_worker.reconcile import Reconciler
from aftercheck_worker.settings import Settings

__all__ = ["Intake", "Link", "Send", "StreamState", "intakes", "run", "stream_state"]


def run(settings: Settings, stop: Event, send: Send | None = None) -> None:
    """Run an intake and its share of the reconciler until `stop` is set.

    Args:
        settings: with `redis_url` and `database_url`.
        stop: set it from a signal handler; the round in progress is finished.
        send: puts ids on a queue of the workers; `app.send_check` by default.

    Raises:
        ConfigurationError: a URL is missing.
    """
    sender, judges = (send, None) if send is not None else _celery()
    intake = Intake(settings, sender)
    timer = threading.Thread(
        target=Reconciler(settings, sender, send_judge=judges).run,
        args=(settings.database_url.get_secret_value() if settings.database_url else "", stop),
        name="reconciler",
        daemon=True,
    )
    timer.start()
    intake.run(stop)
    timer.join(10)


def _celery() -> tuple[Send, Callable[[Sequence[int]], None]]:
    from aftercheck_worker.app import send_check, send_judge

    return send_check, send_judge
