"""The migrated database equals the tables of the code, and can go up, down and up again."""

from __future__ import annotations

import secrets
from datetime import UTC, date, datetime, timedelta

import psycopg
import pytest
from psycopg import sql

from aftercheck_worker.errors import DependencyUnavailable
from aftercheck_worker.storage import database, migrate, partitions, tables

pytestmark = pytest.mark.integration


@pytest.fixture
def empty_url(postgres_url: str) -> str:
    name = f"empty_{secrets.token_hex(6)}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return f"{postgres_url.rpartition('/')[0]}/{name}"


def _tables(url: str) -> set[str]:
    with database.connect(url, name="test") as connection:
        rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {str(name) for (name,) in rows}


def test_up_down_up(empty_url: str) -> None:
    assert migrate.current(empty_url) is None

    migrate.upgrade(empty_url)
    first = _tables(empty_url)
    assert migrate.current(empty_url) == migrate.head()

    migrate.downgrade(empty_url)
    assert _tables(empty_url) == {"alembic_version"}

    migrate.upgrade(empty_url)
    assert _tables(empty_url) == first
    assert set(tables.metadata.tables) <= first


def test_models_equal_migrations(database_url: str) -> None:
    migrate.check(database_url)


def test_a_difference_is_seen(empty_url: str) -> None:
    migrate.upgrade(empty_url)
    with database.connect(empty_url, name="test") as connection:
        connection.execute("ALTER TABLE evaluation DROP COLUMN flagged")

    with pytest.raises(Exception, match="flagged"):
        migrate.check(empty_url)


def test_upgrade_is_repeatable(database_url: str) -> None:
    before = _tables(database_url)

    migrate.upgrade(database_url)

    assert _tables(database_url) == before


def test_partitions_of_the_coming_days_exist(database_url: str) -> None:
    days = partitions.ahead(datetime.now(UTC).date() + timedelta(days=30))
    with database.connect(database_url, name="test") as connection:
        made = partitions.ensure(connection, days)
        again = partitions.ensure(connection, days)
        present = partitions.existing(connection)

    assert len(made) == len(tables.PARTITIONED) * len(days)
    assert again == []
    assert set(made) <= set(present)
    assert partitions.day_of(present[-1]) == days[-1]


def test_rows_in_the_default_child_do_not_stop_the_other_partitions(database_url: str) -> None:
    day = date(2031, 5, 4)
    with database.connect(database_url, name="test") as connection:
        connection.execute("INSERT INTO interaction (day, evaluation_id, body) VALUES (%s, 1, '{}')", (day,))
        made = partitions.ensure(connection, [day])

    assert partitions.child("interaction", day) not in made
    assert partitions.child("claim", day) in made


def test_a_partition_can_be_dropped_and_nothing_else(database_url: str) -> None:
    day = date(2032, 1, 2)
    with database.connect(database_url, name="test") as connection:
        partitions.ensure(connection, [day])
        partitions.drop(connection, partitions.child("claim", day))
        assert partitions.child("claim", day) not in partitions.existing(connection)
        with pytest.raises(ValueError, match="ledger"):
            partitions.drop(connection, "ledger")


def test_no_database_is_one_line(postgres_url: str) -> None:
    url = "postgresql://aftercheck:secret-word@127.0.0.1:1/none"

    with pytest.raises(DependencyUnavailable, match=r"127\.0\.0\.1:1 does not answer") as told:
        migrate.upgrade(url)

    assert "secret-word" not in str(told.value)
    assert "\n" not in str(told.value)
