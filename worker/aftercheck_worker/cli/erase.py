"""`aftercheck erase`: every copy of a trace, or of all of a user's traces, with a receipt (S35)."""

from __future__ import annotations

import getpass
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from aftercheck_worker import settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.explain import normal
from aftercheck_worker.cli.services import Located, located, postgres, redis_reported
from aftercheck_worker.errors import UsageError
from aftercheck_worker.intake import person as held
from aftercheck_worker.intake.keys import Keys
from aftercheck_worker.intake.link import Link
from aftercheck_worker.storage import erasure, person

if TYPE_CHECKING:
    from aftercheck_worker.api.stream import Stream


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def erase(
        trace_id: Annotated[str | None, typer.Argument(help="32 hex digits.")] = None,
        user_id: Annotated[
            str | None, typer.Option(help="All traces that this user asked, and their feedback.")
        ] = None,
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
        json: output.Json = False,
    ) -> None:
        """Erase a trace, or a user, from Postgres and Redis; counts stay.

        Example: aftercheck erase 4bf92f3577b34da6a3ce929d0e0e4736 --yes
        """
        if (trace_id is None) == (not user_id):
            raise UsageError("Nothing to erase", why="it needs a trace id or --user-id", fix="give one of the two")
        if user_id:
            _user(user_id, yes, json)
        else:
            _trace(normal(trace_id or ""), yes, json)


def _trace(wanted: str, yes: bool, json: bool) -> None:
    if not yes:
        typer.confirm(f"Erase every copy of {wanted}?", abort=True, err=True)
    with located(settings.current()) as where, redis_reported(where.redis_url), _stream(where) as stream:
        receipt = _erased(where, stream, wanted)
    if json:
        output.as_json(receipt)
    elif receipt.known:
        output.say(f"Erased {wanted}: {_parts(receipt.removed)}.")
    else:
        output.say(f"Nothing was known of {wanted}; it will not be taken in when it comes.")


def _user(user_id: str, yes: bool, json: bool) -> None:
    """Erase a user. The id itself is neither stored nor printed again: the audit log would be one more copy."""
    if not yes:
        typer.confirm("Erase every trace and feedback of this user?", abort=True, err=True)
    receipts: list[erasure.Receipt] = []
    with located(settings.current()) as where, redis_reported(where.redis_url), _stream(where) as stream:
        tenant, key = where.settings.tenant, where.settings.redaction_key
        with postgres(where, name="erase") as connection:
            found = person.Person.of(
                user_id, person.keys(connection, tenant, key.get_secret_value() if key is not None else "")
            )
            wanted = person.traces(connection, tenant, found)
            thumbs = person.forget_feedback(connection, tenant, found)
            connection.commit()
        link = Link(where.redis_url, name="erase")
        wanted |= held.traces(link, Keys(tenant), found)
        link.close()
        receipts = [_erased(where, stream, one) for one in sorted(wanted)]
    if json:
        output.as_json({"traces": receipts, "feedback": thumbs})
        return
    removed: dict[str, int] = {"feedback": thumbs}
    for receipt in receipts:
        for name, count in receipt.removed.items():
            removed[name] = removed.get(name, 0) + count
    output.say(f"Erased {len(receipts)} traces of the user: {_parts(removed)}.")


@contextmanager
def _stream(where: Located) -> Generator[Stream, None, None]:
    from aftercheck_worker.api.stream import Stream

    found = where.settings
    stream = Stream(where.redis_url, max_entries=found.stream_max_entries, max_bytes=found.stream_max_bytes)
    try:
        yield stream
    finally:
        stream.close()


def _erased(where: Located, stream: Stream, wanted: str) -> erasure.Receipt:
    """Redis, Postgres, and Redis again for what an intake held meanwhile."""
    from aftercheck_worker.api import erasing

    tenant = where.settings.tenant
    gone = erasing.forget(stream, tenant, wanted)
    with postgres(where, name="erase") as connection:
        receipt = erasure.erase(connection, tenant, wanted, actor=f"cli:{getpass.getuser()}", elsewhere=gone)
        connection.commit()
    erasing.forget(stream, tenant, wanted)
    return receipt


def _parts(removed: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in removed.items() if count) or "nothing was left"
