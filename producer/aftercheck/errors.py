"""Errors of the producer. They reach the app only through `init(strict=True)`.

AftercheckError
└── ConfigurationError
"""

from __future__ import annotations


class AftercheckError(Exception):
    """Something in aftercheck failed."""


class ConfigurationError(AftercheckError):
    """A setting or the environment does not allow to start; the message says what, why and how to fix it."""
