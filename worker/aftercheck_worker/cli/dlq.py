"""`aftercheck dlq`: what could not be handled."""

from __future__ import annotations

from typing import Annotated, cast

import psycopg
import typer
from psycopg.rows import TupleRow

from aftercheck_schemas import wire
from aftercheck_worker import settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.services import Located, located, postgres, redis_reported, valkey
from aftercheck_worker.errors import UsageError
from aftercheck_worker.storage import dead_letters
from aftercheck_worker.storage.dead_letters import DeadLetter

Number = Annotated[int, typer.Argument(help="Number of the dead letter, as `dlq list` shows it.")]


def find(connection: psycopg.Connection[TupleRow], tenant: str, number: int) -> DeadLetter:
    """Return one dead letter.

    Raises:
        UsageError: the tenant has no such one.
    """
    for letter in dead_letters.find(connection, tenant, open_only=False, limit=100_000):
        if letter.id == number:
            return letter
    raise UsageError(f"There is no dead letter {number}", why=f"tenant {tenant}", fix="see aftercheck dlq list --all")


def retry(where: Located, connection: psycopg.Connection[TupleRow], letter: DeadLetter) -> str:
    """Give a dead letter back to the path, and close it; say what was done.

    Raises:
        UsageError: it is closed, or its payload was not kept.
    """
    if letter.resolved_at is not None:
        raise UsageError(f"Dead letter {letter.id} is closed", why=str(letter.resolution), fix="nothing to do")
    if letter.evaluation_id is not None:
        if dead_letters.retry_answer(connection, letter.id) is None:
            raise UsageError(
                f"Answer {letter.evaluation_id} cannot be retried", why="it is no dead letter any more", fix="drop it"
            )
        connection.commit()
        return f"Answer {letter.evaluation_id} is pending again; the reconciler sends it alone."
    _send_again(where, connection, letter)
    dead_letters.resolve(connection, letter.id, "retried")
    connection.commit()
    return "The entry is back on the stream."


def _send_again(where: Located, connection: psycopg.Connection[TupleRow], letter: DeadLetter) -> None:
    """Put the entry on the stream before it is closed: a crash in between repeats it, and intake counts it once."""
    payload = dead_letters.payload(connection, letter.id) or b""
    if letter.payload_sha256 and not payload:
        raise UsageError(f"Dead letter {letter.id} has no payload", why="it was above 1 MiB", fix="drop it")
    fields: list[str | bytes] = []
    for name, value in letter.fields.items():
        fields += [name, value]
    if payload:
        fields += ["p", payload]
    tenant, limits = letter.tenant, where.settings
    with redis_reported(where.redis_url), valkey(where) as client:
        answer = cast(
            "bytes",
            client.eval(  # pyright: ignore[reportUnknownMemberType]
                wire.ADMIT_LUA,
                2,
                wire.stream_key(tenant),
                wire.bytes_key(tenant),
                *(str(limits.stream_max_entries), str(limits.stream_max_bytes), str(len(payload)), *fields),
            ),
        )
    if answer == b"full":
        raise UsageError("The stream is full", why="intake is behind", fix="try again when aftercheck stats is lower")


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="Look at dead letters, retry or drop them.", no_args_is_help=True)

    @group.command("list")
    def listed(
        everything: Annotated[bool, typer.Option("--all", help="Closed ones too.")] = False,
        limit: Annotated[int, typer.Option(min=1, max=10_000)] = 100,
        json: output.Json = False,
    ) -> None:
        """List dead letters, newest first.

        Example: aftercheck dlq list --json
        """
        with located(settings.current()) as where, postgres(where, name="dlq") as connection:
            found = dead_letters.find(connection, where.settings.tenant, open_only=not everything, limit=limit)
        if json:
            output.as_json(found)
            return
        headings = ["id", "reason", "app", "trace", "at", "state", "detail"]
        rows = [
            (d.id, d.reason, d.app, d.trace_id, f"{d.created_at:%Y-%m-%d %H:%M:%S}", d.resolution or "open", d.detail)
            for d in found
        ]
        output.table(headings, rows)

    @group.command()
    def show(number: Number, json: output.Json = False) -> None:
        """Show one dead letter, without its text.

        Example: aftercheck dlq show 7
        """
        with located(settings.current()) as where, postgres(where, name="dlq") as connection:
            letter = find(connection, where.settings.tenant, number)
        if json:
            output.as_json(letter)
            return
        names = letter.__struct_fields__
        output.table(["field", "value"], [(name, getattr(letter, name)) for name in names])

    @group.command("retry")
    def retried(number: Number, json: output.Json = False) -> None:
        """Give a dead letter back to the path.

        Example: aftercheck dlq retry 7
        """
        with located(settings.current()) as where, postgres(where, name="dlq") as connection:
            done = retry(where, connection, find(connection, where.settings.tenant, number))
        _told(json, number, done)

    @group.command()
    def drop(number: Number, json: output.Json = False) -> None:
        """Close a dead letter and forget its payload.

        Example: aftercheck dlq drop 7
        """
        with located(settings.current()) as where, postgres(where, name="dlq") as connection:
            letter = find(connection, where.settings.tenant, number)
            if not dead_letters.resolve(connection, letter.id, "dropped"):
                raise UsageError(f"Dead letter {number} is closed", why=str(letter.resolution), fix="nothing to do")
            connection.commit()
        _told(json, number, f"Dead letter {number} is dropped.")

    app.add_typer(group, name="dlq")


def _told(json: bool, number: int, sentence: str) -> None:
    if json:
        output.as_json({"id": number, "done": sentence})
    else:
        output.say(sentence)
