"""Celery shells. Imported by the worker and by its spawned child, where the models are loaded."""

from __future__ import annotations

import logging
import os
import time
from functools import lru_cache
from typing import Final

from aftercheck_worker import app, evaluators, logs, settings
from aftercheck_worker.checking import Checker
from aftercheck_worker.errors import AftercheckError, ConfigurationError
from aftercheck_worker.judging import Judger, open_judger
from aftercheck_worker.progress import Mark
from aftercheck_worker.storage import database

logger = logging.getLogger(__name__)

EXIT_NO_MEMORY: Final = 137
REQUEUE_PAUSE_SECONDS: Final = 1.0


@lru_cache(maxsize=1)
def checker() -> Checker:
    """The checker of this process; loads the models.

    Raises:
        ConfigurationError: DATABASE_URL is not set, or the evaluator cannot run.
    """
    found = settings.current()
    url = _database(found)
    evaluator = evaluators.resolve(found.evaluator, found)
    return Checker(found, evaluator, lambda: database.connect(url, name="worker"))


@lru_cache(maxsize=1)
def mark() -> Mark:
    """Where this process says that it moves."""
    return Mark(settings.current().progress_file)


@lru_cache(maxsize=1)
def judger() -> Judger:
    """The judger of this process; loads the verifier for its cross-check.

    Raises:
        ConfigurationError: DATABASE_URL or AFTERCHECK_JUDGE_URL is not set, or the evaluator cannot run.
    """
    found = settings.current()
    url = _database(found)
    evaluator = evaluators.resolve(found.evaluator, found)
    return open_judger(found, evaluator, lambda: database.connect(url, name="judge"))


@app.on_child_start
def load() -> None:
    """Load the models before the first message comes."""
    mark().born()
    try:
        if settings.current().role == "judge":
            judger()
        else:
            checker()
    except AftercheckError as error:
        logger.critical("%s", error, extra={"action": "load_failed"})


@app.on_logging_setup
def configure_logs() -> None:
    """Use our log format in the worker and in its children."""
    logs.configure(settings.current())


@app.task(app.CHECK)
def check(ids: list[int]) -> None:
    """Check the answers of one message; hand the message back when a service is away."""
    mark().moved()
    try:
        checker().check([int(number) for number in ids[: app.MAX_IDS]], app.came_high())
    except AftercheckError as error:
        logger.warning("%s; the message goes back", error, extra={"action": "requeued"})
        time.sleep(REQUEUE_PAUSE_SECONDS)
        raise app.Requeue(str(error), requeue=True) from error
    except MemoryError:
        os._exit(EXIT_NO_MEMORY)  # a child that ran out of memory is not trusted again; its message is redelivered


@app.task(app.JUDGE)
def judge(ids: list[int]) -> None:
    """Judge the answers of one message. It never goes back: at its deadline an answer falls back to the verifier."""
    mark().moved()
    try:
        judger().judge([int(number) for number in ids[: app.MAX_IDS]])
    except AftercheckError as error:
        logger.warning("%s; the verifier's word becomes final", error, extra={"action": "judge_unavailable"})
    except MemoryError:
        os._exit(EXIT_NO_MEMORY)


def _database(found: settings.Settings) -> str:
    if found.database_url is None:
        raise ConfigurationError(
            "There is no database", why="DATABASE_URL is not set", fix="set it, or `aftercheck up`"
        )
    return found.database_url.get_secret_value()
