"""`aftercheck erase TRACE_ID`: every copy of a trace, with a receipt (S35)."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from aftercheck_worker import settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.explain import normal
from aftercheck_worker.cli.services import located, postgres, redis_reported
from aftercheck_worker.storage import erasure


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def erase(
        trace_id: Annotated[str, typer.Argument(help="32 hex digits.")],
        yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
        json: output.Json = False,
    ) -> None:
        """Erase a trace from Postgres and Redis; counts stay.

        Example: aftercheck erase 4bf92f3577b34da6a3ce929d0e0e4736 --yes
        """
        from aftercheck_worker.api import erasing
        from aftercheck_worker.api.stream import Stream

        wanted = normal(trace_id)
        if not yes:
            typer.confirm(f"Erase every copy of {wanted}?", abort=True, err=True)
        with located(settings.current()) as where, redis_reported(where.redis_url):
            found = where.settings
            stream = Stream(where.redis_url, max_entries=found.stream_max_entries, max_bytes=found.stream_max_bytes)
            gone = erasing.forget(stream, found.tenant, wanted)
            with postgres(where, name="erase") as connection:
                receipt = erasure.erase(
                    connection, found.tenant, wanted, actor=f"cli:{getpass.getuser()}", elsewhere=gone
                )
                connection.commit()
            erasing.forget(stream, found.tenant, wanted)
            stream.close()
        if json:
            output.as_json(receipt)
        elif receipt.known:
            parts = ", ".join(f"{count} {name}" for name, count in receipt.removed.items() if count)
            output.say(f"Erased {wanted}: {parts or 'nothing was left'}.")
        else:
            output.say(f"Nothing was known of {wanted}; it will not be taken in when it comes.")
