"""Connections to Postgres: every wait has an end, and every error a class that says what to do about it."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import urlsplit

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from aftercheck_worker.errors import DependencyUnavailable

if TYPE_CHECKING:
    import sqlalchemy

CONNECT_SECONDS = 5
STATEMENT_SECONDS = 5.0
_GRACE_SECONDS = 2.0

Kind = Literal["unavailable", "serialization", "invalid", "other"]
"""What an error means: wait and retry / retry the transaction at once / never retry this data / a bug."""

_UNAVAILABLE = ("08", "53", "57", "58", "55P03", "25P03")
_T = TypeVar("_T")


class Connection(psycopg.Connection[TupleRow]):
    """A connection whose every wait ends: a black-holed server cannot tell us about its statement timeout (F11)."""

    deadline_seconds: float = STATEMENT_SECONDS + _GRACE_SECONDS

    def wait(self, gen: PQGen[_T], interval: float = 0.1, timeout: float | None = None) -> _T:
        """Run one exchange with the server.

        Raises:
            psycopg.OperationalError: no answer for `deadline_seconds`; the connection is closed.
        """
        try:
            return super().wait(gen, interval, timeout or self.deadline_seconds or None)
        except psycopg.errors._WaitTimeout:  # noqa: SLF001 - the public parent covers every lost connection
            if timeout is None:
                self.pgconn.finish()
                raise psycopg.OperationalError(f"no answer from Postgres for {self.deadline_seconds:g} s") from None
            raise


def connect(url: str, *, name: str, statement_timeout: float = STATEMENT_SECONDS) -> psycopg.Connection[TupleRow]:
    """Open a connection.

    Args:
        url: `postgresql://user:password@host:port/database`.
        name: shown in `pg_stat_activity` as `aftercheck-<name>`.
        statement_timeout: seconds that one statement may take; 0 = no limit.

    Raises:
        DependencyUnavailable: Postgres refuses, is full, or does not answer within 5 s.
    """
    with reported(url):
        connection = Connection.connect(
            url,
            connect_timeout=CONNECT_SECONDS,
            application_name=f"aftercheck-{name}",
            options=f"-c statement_timeout={round(statement_timeout * 1000)} -c timezone=UTC",
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=15_000,
        )
    connection.deadline_seconds = statement_timeout + _GRACE_SECONDS if statement_timeout else 0.0
    return connection


def engine(url: str, *, statement_timeout: float = STATEMENT_SECONDS) -> sqlalchemy.Engine:
    """SQLAlchemy engine for the less hot queries: no pool, so that a forked or idle process holds no slot."""
    import sqlalchemy  # 15 MB that the exporter does without

    return sqlalchemy.create_engine(
        sqlalchemy.make_url(url).set(drivername="postgresql+psycopg"),
        poolclass=sqlalchemy.NullPool,
        connect_args={
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "aftercheck",
            "options": f"-c statement_timeout={round(statement_timeout * 1000)} -c timezone=UTC",
        },
    )


def classify(error: BaseException) -> Kind:
    """Say what to do about an error of psycopg or SQLAlchemy.

    `unavailable` covers a lost or refused connection (these have no SQLSTATE, connection exhaustion included), a
    server that shuts down, a full disk and a timeout. `invalid` is data that Postgres will refuse again.
    """
    error = _driver_error(error)
    if isinstance(error, DependencyUnavailable):
        return "unavailable"
    if isinstance(error, UnicodeEncodeError):
        return "invalid"
    if not isinstance(error, psycopg.Error):
        return "other"
    state = error.sqlstate
    if state in ("40001", "40P01"):
        return "serialization"
    if state is None:
        lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return "unavailable" if lost else "invalid" if isinstance(error, psycopg.DataError) else "other"
    if state.startswith(_UNAVAILABLE):
        return "unavailable"
    return "invalid" if state.startswith(("22", "23", "54")) else "other"


def _driver_error(error: BaseException) -> BaseException:
    """The error beneath one of SQLAlchemy's (`DBAPIError.orig`), else the error itself."""
    original: object = getattr(error, "orig", None)
    return original if isinstance(original, BaseException) else error


def transaction(
    connection: psycopg.Connection[TupleRow],
    work: Callable[[psycopg.Connection[TupleRow]], _T],
    attempts: int = 5,
) -> _T:
    """Run `work` in one transaction and commit; repeat it whole after a serialization failure or deadlock (F14).

    Raises:
        psycopg.Error: any other error at once; a conflict after `attempts` tries. The transaction is rolled back.
        RuntimeError: a transaction is open already.
    """
    if connection.info.transaction_status is TransactionStatus.INTRANS:
        # Inside an open transaction this would be a savepoint: it could neither commit nor be repeated.
        raise RuntimeError("database.transaction() inside an open transaction; commit it, or use autocommit")
    for attempt in range(1, attempts + 1):
        try:
            with connection.transaction():
                return work(connection)
        except psycopg.Error as error:
            if attempt == attempts or classify(error) != "serialization":
                raise
            time.sleep(random.uniform(0.005, 0.02) * 2**attempt)  # noqa: S311 - jitter
    raise AssertionError("unreachable")


@contextlib.contextmanager
def reported(url: str) -> Generator[None]:
    """Turn a lost or refused connection into the one-line error of a command.

    Raises:
        DependencyUnavailable: instead of psycopg's and SQLAlchemy's operational errors.
    """
    try:
        yield
    except Exception as error:
        original = _driver_error(error)
        if not isinstance(original, psycopg.Error) or classify(original) != "unavailable":
            raise
        parts = urlsplit(url)
        raise DependencyUnavailable(
            f"Postgres at {parts.hostname or 'localhost'}:{parts.port or 5432} does not answer",
            why=" ".join(str(original).split())[:300],
            fix="start it, or check DATABASE_URL",
        ) from error
