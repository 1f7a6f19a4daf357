"""`aftercheck sampling`: which share of an app's traces is evaluated (R4)."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from aftercheck_worker import settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.services import located, postgres
from aftercheck_worker.errors import UsageError
from aftercheck_worker.storage import sampling as rates

MODES = ("trace", "session")


def actor() -> str:
    """Name of the user, for the audit log; "" where the system knows none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="Show and set sampling rates.", no_args_is_help=True)

    @group.command("list")
    def listed(json: output.Json = False) -> None:
        """List the rates in force.

        Example: aftercheck sampling list
        """
        with located(settings.current()) as where, postgres(where, name="sampling") as connection:
            found = rates.rates(connection, where.settings.tenant)
        fallback = 1.0 if where.settings.dev else where.settings.sampling_rate
        if json:
            output.as_json({"default": fallback, "apps": found})
            return
        shown = [(r.app, r.rate, r.mode, r.version, "sampling set") for r in found.values()]
        if rates.EVERY_APP not in found:
            source = "AFTERCHECK_DEV" if where.settings.dev else "AFTERCHECK_SAMPLING_RATE"
            shown.append((rates.EVERY_APP, fallback, where.settings.sampling_by, 0, source))
        output.table(["app", "rate", "by", "version", "set by"], shown)
        if where.settings.dev:
            output.say("AFTERCHECK_DEV=1: every trace is evaluated, whatever the table says.", style="yellow")

    @group.command("set")
    def put(
        name: Annotated[str, typer.Argument(metavar="APP", help="App name, or '*' for all others.")],
        rate: Annotated[float, typer.Argument(help="0 to 1, e.g. 0.05 for 5 %.")],
        by: Annotated[str, typer.Option("--by", help="trace, or session (needed by fatigue).")] = "trace",
        json: output.Json = False,
    ) -> None:
        """Set the rate of an app; in force within seconds, without a restart.

        Example: aftercheck sampling set finance-rag 0.05
        """
        if not 0 <= rate <= 1:
            raise UsageError(f"{rate:g} is no rate", why="a rate is a share from 0 to 1", fix="use 0.05 for 5 %")
        if by not in MODES:
            raise UsageError(f"--by {by!r} is unknown", why="it names what is hashed", fix="use trace or session")
        mode: rates.Mode = "session" if by == "session" else "trace"
        with located(settings.current()) as where, postgres(where, name="sampling") as connection:
            version = rates.set_rate(connection, where.settings.tenant, name, rate, mode, actor=actor())
            connection.commit()
        if json:
            output.as_json({"app": name, "rate": rate, "by": mode, "version": version})
        else:
            output.say(f"{name}: rate {rate:g} by {mode}, version {version}.")

    app.add_typer(group, name="sampling")
