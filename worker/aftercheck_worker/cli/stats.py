"""`aftercheck stats`: the funnel."""

from __future__ import annotations

from typing import Annotated

import psycopg
import redis
import typer
from psycopg.rows import TupleRow

from aftercheck_schemas.wire import stream_key
from aftercheck_worker import funnel, settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.services import Located, located, postgres, redis_reported, valkey
from aftercheck_worker.exporter import queues
from aftercheck_worker.storage import totals


def in_flight(connection: psycopg.Connection[TupleRow], tenant: str, app: str | None) -> dict[str, int]:
    """Ledger rows without a terminal state, by state."""
    rows = connection.execute(
        "SELECT state, count(*)::int FROM ledger WHERE state IN ('pending', 'checking', 'judging')"
        " AND tenant = %(tenant)s AND (%(app)s::text IS NULL OR app = %(app)s) GROUP BY state ORDER BY state",
        {"tenant": tenant, "app": app},
    ).fetchall()
    return {str(state): int(count) for state, count in rows}


def read(connection: psycopg.Connection[TupleRow], tenant: str, app: str | None = None) -> funnel.Funnel:
    """Read the funnel of a tenant."""
    return funnel.build(totals.read(connection, tenant), in_flight(connection, tenant, app), app=app)


def waiting(where: Located) -> int:
    """Stream entries plus traces in assembly.

    Raises:
        DependencyUnavailable: Redis does not answer.
    """
    with redis_reported(where.redis_url), valkey(where) as client:
        return _waiting(client, where.settings.tenant)


def _waiting(client: redis.Redis, tenant: str) -> int:
    return client.xlen(stream_key(tenant)) + client.zcard(queues.due_key(tenant))


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def stats(
        name: Annotated[str | None, typer.Option("--app", help="Only this app.")] = None,
        json: output.Json = False,
    ) -> None:
        """Show where traces went: received, sampled, answers, verdicts.

        Example: aftercheck stats --app finance-rag
        """
        with located(settings.current()) as where, postgres(where, name="stats") as connection:
            found = read(connection, where.settings.tenant, name)
            depth = waiting(where)
        hints = found.hints(waiting=depth)
        if json:
            output.as_json({"funnel": found, "waiting": depth, "hints": hints})
            return
        output.table(["step", "count", "details"], [*funnel.lines(found), ("waiting in Redis", depth, "")])
        for hint in hints:
            output.say(hint, style="yellow")
