"""`aftercheck doctor`: what is wrong here, and the command that mends it."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import redis
import typer
from rich.text import Text

from aftercheck_worker import settings
from aftercheck_worker.cli import checks, judge_checks, output
from aftercheck_worker.cli.checks import Finding
from aftercheck_worker.cli.services import Located, located, postgres, redis_reported, valkey
from aftercheck_worker.errors import AftercheckError

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def examine() -> list[Finding]:
    """Run all checks; one that cannot run is a finding itself."""
    found = checks.machine()
    try:
        configured = settings.current()
    except AftercheckError as error:
        return [*found, checks.failed("settings", error)]
    found += checks.configuration(configured)
    found += checks.evaluator(configured)
    found += judge_checks.endpoint(configured)
    try:
        with located(configured) as where:
            kind = f"embedded, in {configured.home}" if where.embedded else "from DATABASE_URL and REDIS_URL"
            found.append(checks.ok("services", kind))
            found += _guarded("redis", lambda: _redis(where))
            found += _guarded("postgres", lambda: _postgres(where))
    except AftercheckError as error:
        found.append(checks.failed("services", error))
    return found + checks.exporter(configured)


def _guarded(check: str, run: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return run()
    except AftercheckError as error:
        return [checks.failed(check, error)]
    except (psycopg.Error, redis.RedisError) as error:
        detail = " ".join(str(error).split())[:200]
        return [
            checks.fail(check, f"{type(error).__name__}: {detail}", "check its log and rights", checks.DEPENDENCY)
        ]


def _redis(where: Located) -> list[Finding]:
    with redis_reported(where.redis_url), valkey(where) as client:
        return checks.queue(client, where.settings)


def _postgres(where: Located) -> list[Finding]:
    with postgres(where, name="doctor", migrated=False) as connection:
        found = checks.store(connection, where.database_url)
        current = all(finding.status != "fail" for finding in found)
        return found + (judge_checks.kin(connection, where.settings) if current else [])


def exit_code(found: list[Finding]) -> int:
    """0 unless something failed; a lost dependency (69) goes before a wrong configuration (78)."""
    return min((finding.exit_code for finding in found if finding.status == "fail"), default=0)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def doctor(json: output.Json = False) -> None:
        """Check this machine, the services and the settings; say how to mend each fault.

        Example: aftercheck doctor --json
        """
        found = examine()
        if json:
            output.as_json(found)
        else:
            console = output.data()
            for finding in found:
                mark = Text(f"{finding.status:<5}", style=STYLES[finding.status])
                console.print(mark + Text(f"{finding.check:<17}{output.visible(finding.detail)}"), soft_wrap=True)
                if finding.fix:
                    console.print(f"     fix: {output.visible(finding.fix)}", soft_wrap=True)
        code = exit_code(found)
        if code:
            raise typer.Exit(code)
