"""`aftercheck up`: everything on one machine, in the foreground."""

from __future__ import annotations

import typer

from aftercheck_worker import settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.children import Children
from aftercheck_worker.cli.processes import notice, stopped_by_signals
from aftercheck_worker.cli.services import located
from aftercheck_worker.storage import migrate

POLL_SECONDS = 0.5


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def up(json: output.Json = False) -> None:
        """Run everything on this machine: services, schema, worker, intake, exporter.

        Example: AFTERCHECK_DEV=1 aftercheck up
        """
        found = settings.current()
        stop = stopped_by_signals()
        with located(found) as where:
            notice(where)
            migrate.upgrade(where.database_url)
            with Children(where.child_environ(), logs=None) as children:
                children.start("worker")
                children.start("exporter")
                base = f"http://{found.exporter_host}:{found.exporter_port}"
                # An embedded address is printed whole: only this machine can reach it. Yours may hold a secret.
                target = where.redis_url if "REDIS_URL" in where.environ else "your REDIS_URL"
                if json:
                    output.as_json({"redis_url": target, "metrics": f"{base}/metrics"})
                else:
                    output.say(f"Send traces to {target}")
                    output.say(f"Then: aftercheck stats; curl {base}/metrics. Ctrl-C stops everything.")
                while not stop.wait(POLL_SECONDS):
                    children.check()
