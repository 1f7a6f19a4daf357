"""Where the services of a command are: the configured URLs, or the embedded pair of the home folder."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager

import msgspec
import psycopg
import redis
from psycopg.rows import TupleRow
from pydantic import SecretStr
from redis.backoff import NoBackoff
from redis.retry import Retry

from aftercheck_worker import embedded
from aftercheck_worker.errors import ConfigurationError, DependencyUnavailable
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """Settings with both URLs filled in.

    Attributes:
        settings: as read, with the embedded URLs where none were configured.
        embedded: True when at least one service is an embedded one.
        environ: variables that a child process needs to find the same services.
    """

    settings: Settings
    embedded: bool
    environ: dict[str, str]

    def child_environ(self, **more: str) -> dict[str, str]:
        """Environment of a child process: ours, the addresses of the embedded services, and `more`."""
        return {**os.environ, **self.environ, **more}

    @property
    def database_url(self) -> str:
        """URL of Postgres, with its password."""
        return reveal(self.settings.database_url, "DATABASE_URL")

    @property
    def redis_url(self) -> str:
        """URL of Redis or Valkey, with its password."""
        return reveal(self.settings.redis_url, "REDIS_URL")


def reveal(url: SecretStr | None, name: str) -> str:
    """Return the secret value.

    Raises:
        ConfigurationError: it is not set.
    """
    if url is None:
        raise ConfigurationError(f"{name} is not set", why="this command needs it", fix=f"export {name}=...")
    return url.get_secret_value()


@contextmanager
def located(settings: Settings) -> Generator[Located, None, None]:
    """Find the services, and start or join embedded ones where no URL is set; stop at exit what was started here.

    Raises:
        DependencyUnavailable: an embedded server does not come up.
        ConfigurationError: no URL is set and the `embedded` extra is not installed.
    """
    running = embedded.ensure(settings)
    if running is None:
        yield Located(settings=settings, embedded=False, environ={})
        return
    with running:
        found: dict[str, SecretStr] = {}
        if running.database_url:
            found["database_url"] = SecretStr(running.database_url)
        if running.redis_url:
            found["redis_url"] = SecretStr(running.redis_url)
        yield Located(
            settings=settings.model_copy(update=found),
            embedded=True,
            environ=running.environ(),
        )


@contextmanager
def postgres(
    where: Located, *, name: str, migrated: bool = True
) -> Generator[psycopg.Connection[TupleRow], None, None]:
    """Open a connection to a migrated database; an embedded one is migrated on the way.

    Raises:
        DependencyUnavailable: Postgres does not answer.
        ConfigurationError: the schema is not the one that this code expects.
    """
    if migrated:
        require_schema(where)
    with database.reported(where.database_url), database.connect(where.database_url, name=name) as connection:
        yield connection


def require_schema(where: Located) -> None:
    """Bring an embedded database to the newest schema, and refuse a foreign one that is older.

    Raises:
        ConfigurationError: the schema is missing or differs.
    """
    from aftercheck_worker.storage import migrate  # brings alembic; the exporter does without

    current, head = migrate.current(where.database_url), migrate.head()
    if current == head:
        return
    if where.embedded and where.settings.database_url is not None and "DATABASE_URL" in where.environ:
        migrate.upgrade(where.database_url)
        return
    raise ConfigurationError(
        f"The database has schema {current or 'none'}",
        why=f"this version of aftercheck needs {head}",
        fix="aftercheck migrate",
    )


def valkey(where: Located) -> redis.Redis:
    """Client with short timeouts and no retries: a command answers or says that Redis does not."""
    client: redis.Redis = redis.Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
        where.redis_url, socket_timeout=3, socket_connect_timeout=3, retry=Retry(NoBackoff(), 0)
    )
    return client


@contextmanager
def redis_reported(url: str) -> Generator[None, None, None]:
    """Turn a lost or refused connection to Redis into one line.

    Raises:
        DependencyUnavailable: Redis does not answer.
    """
    try:
        yield
    except redis.RedisError as error:
        place = url.rsplit("@", 1)[-1].removeprefix("redis://").split("/", 1)[0]
        raise DependencyUnavailable(
            f"Redis at {place} does not answer",
            why=" ".join(str(error).split())[:200],
            fix="start it, or check REDIS_URL",
        ) from error
