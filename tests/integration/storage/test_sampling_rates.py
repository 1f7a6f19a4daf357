"""Rates are versioned, and the highest recent one is known (R4, P9)."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.rows import TupleRow

from aftercheck_worker.storage import sampling

pytestmark = [pytest.mark.integration, pytest.mark.req("R4", "P9")]

Connection = psycopg.Connection[TupleRow]


def test_the_newest_version_is_in_force(connection: Connection) -> None:
    assert sampling.rates(connection, "new") == {}

    first = sampling.set_rate(connection, "new", "shop", 0.5, actor="on-call")
    second = sampling.set_rate(connection, "new", "*", 0.1)
    third = sampling.set_rate(connection, "new", "shop", 0.05, "session")

    found = sampling.rates(connection, "new")
    assert first < second < third
    assert found["shop"] == sampling.Rate(app="shop", version=third, rate=0.05, mode="session", recent=0.5)
    assert found["*"] == sampling.Rate(app="*", version=second, rate=0.1, mode="trace", recent=0.1)
    assert sampling.rates(connection, "other") == {}


def test_an_old_rate_is_forgotten_after_ten_minutes(connection: Connection) -> None:
    sampling.set_rate(connection, "past", "shop", 1.0)
    sampling.set_rate(connection, "past", "shop", 0.2)
    connection.execute("UPDATE sampling SET created_at = created_at - interval '9 minutes' WHERE tenant = 'past'")
    assert sampling.rates(connection, "past")["shop"].recent == 1.0

    connection.execute("UPDATE sampling SET created_at = created_at - interval '2 minutes' WHERE tenant = 'past'")
    assert sampling.rates(connection, "past")["shop"].recent == 0.2


def test_a_change_is_in_the_audit_log(connection: Connection) -> None:
    sampling.set_rate(connection, "audited", "shop", 0.25, actor="on-call")

    row = connection.execute(
        "SELECT actor, target, details FROM audit WHERE details->>'tenant' = 'audited'"
    ).fetchone()

    assert row == ("on-call", "shop", {"tenant": "audited", "rate": 0.25, "mode": "trace", "version": 1})


@pytest.mark.parametrize("rate", [-0.1, 1.5, float("nan")])
def test_impossible_rates_are_refused(connection: Connection, rate: float) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        sampling.set_rate(connection, "bad", "shop", rate)
    assert sampling.rates(connection, "bad") == {}
