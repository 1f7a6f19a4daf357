"""Each test gets a tenant of its own on the module's services."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_worker.settings import Settings
from tests.integration.intake.traffic import Sent, Traffic, quick


@pytest.fixture
def mine(settings: Settings) -> Settings:
    """Settings with short waits, rate 1 and a fresh tenant."""
    return quick(settings, tenant=f"t{secrets.token_hex(4)}")


@pytest.fixture
def traffic(mine: Settings, redis_url: str) -> Iterator[Traffic]:
    """A producer."""
    made = Traffic(redis_url, mine.tenant)
    yield made
    made.client.close()


@pytest.fixture
def sent() -> Sent:
    """What went to the workers."""
    return Sent()


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection[TupleRow]]:
    """The module's database."""
    with psycopg.connect(database_url) as opened:
        yield opened
