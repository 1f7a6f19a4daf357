"""The long-running processes, one command each: `intake`, `worker`, `exporter`, and `migrate` before them."""

from __future__ import annotations

import importlib
import signal
import sys
import threading
from types import FrameType
from typing import Annotated, Any

import typer

from aftercheck_worker import logs, settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.services import Located, located, require_schema


def stopped_by_signals() -> threading.Event:
    """Return an event that SIGTERM and Ctrl-C set."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        _ = number, frame
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stop


def notice(where: Located) -> None:
    """Say what is special about this run: dev sampling, embedded services."""
    if where.settings.dev:
        output.say("AFTERCHECK_DEV=1: every trace is evaluated (rate 1.0, not the usual 0.05).", style="yellow")
    if where.embedded:
        output.say(f"Embedded services in {where.settings.home}; set DATABASE_URL and REDIS_URL for your own.")


def run_exporter(where: Located, stop: threading.Event) -> None:
    """Serve metrics until `stop` is set."""
    exporter: Any = importlib.import_module("aftercheck_worker.exporter")
    found = where.settings
    source = exporter.Source(
        database_url=where.database_url,
        redis_url=where.redis_url,
        broker_url=found.broker_url.get_secret_value() if found.broker_url else where.redis_url,
        tenant=found.tenant,
    )
    exporter.run(found, source, stop, ready=_tell_url)


def _tell_url(url: str) -> None:
    sys.stderr.write(f"metrics: {url}/metrics\n")  # without rich: see `output`


def register(app: typer.Typer) -> None:
    """Add the commands."""

    @app.command()
    def worker(
        intake: Annotated[bool, typer.Option(help="Supervise an intake process too.")] = True,
        allow_eviction: Annotated[
            bool, typer.Option("--allow-eviction", help="Accept a Redis that may evict keys.")
        ] = False,
    ) -> None:
        """Run a Celery worker; it samples too, unless --no-intake.

        Example: aftercheck worker --no-intake
        """
        supervise: Any = importlib.import_module("aftercheck_worker.supervise")
        found = settings.current()
        with located(found) as where:
            notice(where)
            require_schema(where)
            code: int = supervise.run(
                where.settings,
                intake=intake,
                allow_eviction=allow_eviction,
                environ=where.child_environ(),
            )
        raise typer.Exit(code)

    @app.command()
    def intake() -> None:
        """Read the stream: sample, assemble, fill the ledger.

        Example: aftercheck intake
        """
        found = settings.current()
        logs.configure(found)
        module: Any = importlib.import_module("aftercheck_worker.intake")
        with located(found) as where:
            notice(where)
            require_schema(where)
            module.run(where.settings, stopped_by_signals())

    @app.command()
    def exporter() -> None:
        """Serve /metrics, /livez and /readyz.

        Example: AFTERCHECK_EXPORTER_PORT=9464 aftercheck exporter
        """
        found = settings.current()
        logs.configure(found)
        with located(found) as where:
            notice(where)
            run_exporter(where, stopped_by_signals())

    @app.command()
    def migrate(json: output.Json = False) -> None:
        """Bring the database to the newest schema.

        Example: DATABASE_URL=postgresql://... aftercheck migrate
        """
        from aftercheck_worker.storage import migrate as migrations  # as in services

        with located(settings.current()) as where:
            before = migrations.current(where.database_url)
            migrations.upgrade(where.database_url)
            after = migrations.current(where.database_url)
        if json:
            output.as_json({"before": before, "after": after})
        elif before == after:
            output.say(f"The database is at {after} already.")
        else:
            output.say(f"Migrated from {before or 'nothing'} to {after}.")
