"""The one place where errors of ours end before they reach the host app (delivery contract P1)."""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("aftercheck")
P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F")
_seen: set[str] = set()


def warn_once(message: str) -> None:
    """Log a warning the first time this very text comes up in the process.

    A log record and not `warnings.warn`: an app that turns warnings into errors must not break.
    """
    if message not in _seen:
        if len(_seen) < 1000:
            _seen.add(message)
        logger.warning(message)


def forget_warnings() -> None:
    """Let every warning be said again; for tests."""
    _seen.clear()


def never_raises(fallback: F) -> Callable[[Callable[P, R]], Callable[P, R | F]]:
    """Make a public function return `fallback` and warn once instead of raising into the app."""

    def decorate(function: Callable[P, R]) -> Callable[P, R | F]:
        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R | F:
            try:
                return function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the app must never see it
                warn_once(f"aftercheck.{function.__name__} failed ({describe(error)}); the app is not affected")
                return fallback

        return guarded

    return decorate


def describe(error: BaseException) -> str:
    """One short line without payload text: the type, and the message cut to 200 characters."""
    text = str(error).splitlines()[0][:200] if str(error) else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
