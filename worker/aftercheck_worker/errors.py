"""The worker's error tree. Every message says what happened, why, and how to fix it, in one line.

AftercheckError              exit 70
├── ConfigurationError       exit 78   a setting is wrong or missing
│   └── ModelRefused         exit 78   a model file is missing, altered, pickled or needs remote code
├── DependencyUnavailable    exit 69   Redis, Postgres or a judge does not answer
├── UsageError               exit 64   the command line asks for something impossible
└── InputError               exit 65   a file that the user named cannot be read
"""

from __future__ import annotations

from typing import ClassVar


class AftercheckError(Exception):
    """Root of all errors that a command turns into one line and an exit code."""

    exit_code: ClassVar[int] = 70

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        self.what, self.why, self.fix = what, why, fix
        super().__init__(" ".join(part for part in (what, why and f"({why})", fix and f"Fix: {fix}") if part))


class ConfigurationError(AftercheckError):
    """A setting is wrong or missing."""

    exit_code = 78


class ModelRefused(ConfigurationError):
    """A model file is missing, altered, pickled, or needs remote code."""


class DependencyUnavailable(AftercheckError):
    """A service that we need does not answer."""

    exit_code = 69


class UsageError(AftercheckError):
    """The command line asks for something impossible."""

    exit_code = 64


class InputError(AftercheckError):
    """A file that the user named cannot be read."""

    exit_code = 65
