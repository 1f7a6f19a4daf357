"""`aftercheck version`."""

from __future__ import annotations

import platform
from importlib import metadata

import typer

from aftercheck_schemas.wire import WIRE_VERSION
from aftercheck_worker.cli import output

LIBRARIES = ("celery", "redis", "psycopg", "sqlalchemy", "opentelemetry-sdk", "traceloop-sdk", "onnxruntime")


def describe() -> dict[str, object]:
    """Versions of aftercheck, of the wire format, of Python and of the libraries that matter; None when absent."""
    return {
        "aftercheck": _version("aftercheck"),
        "wire": WIRE_VERSION,
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def version(json: output.Json = False) -> None:
        """Show versions.

        Example: aftercheck version --json
        """
        found = describe()
        if json:
            output.as_json(found)
        else:
            output.data().print(f"aftercheck {found['aftercheck']} (wire {found['wire']}, Python {found['python']})")
