"""`aftercheck up`: everything on one machine, in the foreground."""

from __future__ import annotations

import ipaddress

import typer

from aftercheck_worker import settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.children import Children
from aftercheck_worker.cli.processes import notice, stopped_by_signals
from aftercheck_worker.cli.services import located
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import migrate

POLL_SECONDS = 0.5
NO_PAGE = (
    "No page and no API: AFTERCHECK_API_HOST is not loopback, and nobody has a token."
    " Fix: aftercheck token add NAME --scope read, then start again."
)


def serves(settings: Settings) -> bool:
    """Whether `serve` would start: on loopback, or with a token file."""
    if (settings.api_tokens_file or settings.home / "tokens.json").exists():
        return True
    try:
        return ipaddress.ip_address(settings.api_host).is_loopback
    except ValueError:
        return settings.api_host == "localhost"


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def up(json: output.Json = False) -> None:
        """Run everything on this machine: services, schema, worker, intake, exporter, page.

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
                pages = serves(found)
                if pages:
                    children.start("serve")
                base = f"http://{found.exporter_host}:{found.exporter_port}"
                # An embedded address is printed whole: only this machine can reach it. Yours may hold a secret.
                target = where.redis_url if "REDIS_URL" in where.environ else "your REDIS_URL"
                page = f"http://{found.api_host}:{found.api_port}/ui" if pages else None
                if json:
                    output.as_json({"redis_url": target, "metrics": f"{base}/metrics", "page": page})
                else:
                    output.say(f"Send traces to {target}")
                    output.say(f"Then: aftercheck stats; curl {base}/metrics. Ctrl-C stops everything.")
                    output.say(f"Page: {page}" if page else NO_PAGE)
                while not stop.wait(POLL_SECONDS):
                    children.check()
