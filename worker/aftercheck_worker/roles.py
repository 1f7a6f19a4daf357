"""The processes that `supervise` starts: `python -m aftercheck_worker.roles preflight|celery|judge|intake`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn, Protocol, cast

from aftercheck_worker import app, evaluators, logs, settings
from aftercheck_worker.errors import AftercheckError

ROLES: Final = ("preflight", "celery", "judge", "intake")
ALLOW_EVICTION: Final = "--allow-eviction"


class _Intake(Protocol):
    def run(self, settings: settings.Settings, stop: threading.Event) -> None: ...


def main(arguments: list[str]) -> int:
    """Run one role until it ends; return its exit code. Errors become one line on stderr."""
    role = arguments[0] if arguments else ""
    if role == "judge":
        os.environ["AFTERCHECK_ROLE"] = "judge"  # the pool's spawned child reads it
    try:
        found = settings.current()
        logs.configure(found)
        if role == "preflight":
            _preflight(found, allow_eviction=ALLOW_EVICTION in arguments)
        elif role == "celery":
            app.follow_parent()
            app.work(found)
        elif role == "judge":
            app.follow_parent()
            app.work(found, (app.QUEUE_JUDGE,))
        elif role == "intake":
            app.follow_parent()
            _intake(found)
        else:
            sys.stderr.write(f"usage: python -m aftercheck_worker.roles {'|'.join(ROLES)}\n")
            return os.EX_USAGE
    except AftercheckError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


def _preflight(found: settings.Settings, *, allow_eviction: bool) -> None:
    """Refuse what no restart can heal. Loads the models once, in a process that then ends."""
    app.verify(app.configuration(found))
    app.verify_broker(found, allow_eviction=allow_eviction)
    evaluator = evaluators.resolve(found.evaluator, found)
    if found.judge_url is not None:
        # imported here: without a judge nobody needs its client
        module = importlib.import_module("aftercheck_worker.judging")
        cast("Callable[..., object]", module.open_judger)(found, evaluator, _no_connection)


def _no_connection() -> NoReturn:
    raise AssertionError("a preflight writes nothing")


def _intake(found: settings.Settings) -> None:
    # imported here: the intake is one of several users of this module's layer, and `celery` never needs it
    intake = cast("_Intake", importlib.import_module("aftercheck_worker.intake"))
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        _ = number, frame
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    intake.run(found, stop)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
