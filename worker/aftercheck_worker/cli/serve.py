"""`aftercheck serve` and `aftercheck token`: the API with the page, and who may use it."""

from __future__ import annotations

# The API is imported inside the commands: FastAPI would cost every other command half a second.
import time
from typing import Annotated

import typer

from aftercheck_worker import logs, settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.processes import notice, stopped_by_signals
from aftercheck_worker.cli.services import located, require_schema
from aftercheck_worker.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the commands."""

    @app.command()
    def serve() -> None:
        """Serve the check, feedback, traces, the OTLP receiver and the page.

        Example: AFTERCHECK_API_PORT=8080 aftercheck serve
        """
        from aftercheck_worker.api import server

        found = settings.current()
        logs.configure(found)
        with located(found) as where:
            notice(where)
            require_schema(where)
            server.run(where.settings, stopped_by_signals(), ready=_tell)

    app.add_typer(_tokens(), name="token")


def _tell(url: str) -> None:
    output.say(f"page: {url}/ui    check: POST {url}/monitor/check    OTLP: {url}/v1/traces")


def _tokens() -> typer.Typer:
    group = typer.Typer(help="Make, list and revoke API tokens.", no_args_is_help=True)

    @group.command()
    def add(
        name: Annotated[str, typer.Argument(help="Letters, digits and dashes.")],
        scope: Annotated[list[str], typer.Option(help="check, feedback, read, erase, ingest or admin.")],
        tenant: Annotated[str | None, typer.Option(help="Tenant; the configured one by default.")] = None,
        days: Annotated[float, typer.Option(min=0, help="Days until it expires; 0 = never.")] = 0,
    ) -> None:
        """Make a token and print it once.

        Example: aftercheck token add oncall --scope read
        """
        from aftercheck_worker.api import server, tokens

        found = settings.current()
        chosen: list[tokens.Scope] = [word for word in tokens.SCOPES if word in scope]
        if len(chosen) != len(set(scope)):
            raise UsageError("Unknown scope", why=", ".join(scope), fix=f"choose from {', '.join(tokens.SCOPES)}")
        expires = time.time() + days * 86_400 if days else 0
        path = server.tokens_path(found)
        word = tokens.add(path, name, chosen, tenant=tenant or found.tenant, expires=expires)
        output.say("Keep it: only its hash is stored.")
        typer.echo(word)

    @group.command("list")
    def listed(json: output.Json = False) -> None:
        """List tokens, without their secrets.

        Example: aftercheck token list --json
        """
        from aftercheck_worker.api import server, tokens

        known = tokens.read(server.tokens_path(settings.current()))
        rows = [(one.id, " ".join(one.scopes), one.tenant) for one in known]
        if json:
            output.as_json([{"id": one.id, "scopes": one.scopes, "tenant": one.tenant} for one in known])
        else:
            output.table(["id", "scopes", "tenant"], rows)

    @group.command()
    def revoke(name: str) -> None:
        """Revoke a token; running servers notice at once.

        Example: aftercheck token revoke oncall
        """
        from aftercheck_worker.api import server, tokens

        if not tokens.remove(server.tokens_path(settings.current()), name):
            raise UsageError(
                f"There is no token {name[:64]!r}", why="it was never made, or is revoked", fix="nothing"
            )
        output.say(f"Token {name} is revoked.")

    return group
