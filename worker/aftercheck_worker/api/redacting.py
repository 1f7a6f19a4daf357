"""Redaction at the edge: what comes over HTTP is cleaned like what the SDK sends (S01, S04)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from aftercheck_schemas.redaction import Redactor, default_key
from aftercheck_schemas.slimming import Slimmer
from aftercheck_worker.settings import Settings

TEXT_CHARS: Final = 256 * 1024
"""A longer text is cut, as the SDK does by default."""


def slimmer(settings: Settings, app: str, scope: str, chars: int = TEXT_CHARS) -> Slimmer:
    """Cleaner for one trace of one app.

    Args:
        settings: with the fleet's key; without one the key follows from the app's name, as in the SDK.
        app: name of the app.
        scope: trace id, so that placeholders do not link traces.
        chars: a longer text is cut, after redaction.
    """
    return Slimmer(redactor(settings, app), scope, chars)


def redactor(settings: Settings, app: str) -> Redactor:
    """The redactor of one app."""
    return _redactor(settings.redaction_key.get_secret_value() if settings.redaction_key is not None else "", app)


@lru_cache(maxsize=256)
def _redactor(key: str, app: str) -> Redactor:
    return Redactor(key.encode() or default_key(app))
