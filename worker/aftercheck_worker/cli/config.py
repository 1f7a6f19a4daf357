"""`aftercheck config show`: every setting, its value and where it came from (U16)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated

import msgspec
import typer
from pydantic import SecretStr

from aftercheck_worker import settings
from aftercheck_worker.cli import output

PLAIN_NAMES = frozenset({"database_url", "redis_url"})
"""Fields whose variable has no AFTERCHECK_ prefix."""


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One setting as it is shown. Secrets are masked."""

    name: str
    value: str | None
    source: str
    description: str


def variable(field: str) -> str:
    """Name of the environment variable of a field."""
    return field.upper() if field in PLAIN_NAMES else settings.PREFIX + field.upper()


def describe(environ: Mapping[str, str]) -> list[Shown]:
    """Return all settings as `environ` gives them.

    Raises:
        ConfigurationError: a value is wrong.
    """
    found = settings.load(environ)
    return [
        Shown(
            name=variable(field),
            value=_value(getattr(found, field)),
            source=_source(field, environ),
            description=info.description or "",
        )
        for field, info in settings.Settings.model_fields.items()
    ]


def _value(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, SecretStr):
        return "***"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _source(field: str, environ: Mapping[str, str]) -> str:
    names = [settings.PREFIX + field.upper()]
    if field in PLAIN_NAMES:
        names.insert(0, field.upper())
    for name in names:
        if environ.get(f"{name}_FILE"):
            return f"file ({name}_FILE)"
        if environ.get(name):
            return f"environment ({name})"
    return "default"


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="Show the settings.", no_args_is_help=True)

    @group.command()
    def show(
        sources: Annotated[bool, typer.Option("--sources", help="Say where each value comes from.")] = False,
        json: output.Json = False,
    ) -> None:
        """Show every setting; secrets are masked.

        Example: aftercheck config show --sources
        """
        shown = describe(os.environ)
        if json:
            output.as_json(shown)
            return
        headings = ["setting", "value", *(["source"] if sources else []), "meaning"]
        output.table(headings, [[s.name, s.value, *([s.source] if sources else []), s.description] for s in shown])

    app.add_typer(group, name="config")
