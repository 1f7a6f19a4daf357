"""What an error of Postgres means for the work in hand."""

from __future__ import annotations

import psycopg
import pytest
import sqlalchemy.exc

from aftercheck_worker.errors import ConfigurationError, DependencyUnavailable
from aftercheck_worker.storage import database

pytestmark = pytest.mark.req("F12", "F14", "F15", "F16", "F17")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (psycopg.OperationalError("connection refused"), "unavailable"),
        (psycopg.OperationalError("remaining connection slots are reserved"), "unavailable"),
        (psycopg.InterfaceError("the connection is closed"), "unavailable"),
        (psycopg.errors.AdminShutdown(), "unavailable"),
        (psycopg.errors.CannotConnectNow(), "unavailable"),
        (psycopg.errors.TooManyConnections(), "unavailable"),
        (psycopg.errors.DiskFull(), "unavailable"),
        (psycopg.errors.QueryCanceled(), "unavailable"),
        (psycopg.errors.LockNotAvailable(), "unavailable"),
        (psycopg.errors.IoError(), "unavailable"),
        (psycopg.errors.SerializationFailure(), "serialization"),
        (psycopg.errors.DeadlockDetected(), "serialization"),
        (psycopg.errors.CheckViolation(), "invalid"),
        (psycopg.errors.UntranslatableCharacter(), "invalid"),
        (psycopg.errors.ProgramLimitExceeded(), "invalid"),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL"), "invalid"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), "invalid"),
        (psycopg.errors.UndefinedTable(), "other"),
        (psycopg.ProgrammingError(), "other"),
        (KeyError("x"), "other"),
        (ConfigurationError("x"), "other"),
        (DependencyUnavailable("x"), "unavailable"),
        (sqlalchemy.exc.OperationalError("SELECT", {}, psycopg.errors.AdminShutdown()), "unavailable"),
    ],
)
def test_classify(error: BaseException, kind: str) -> None:
    assert database.classify(error) == kind
