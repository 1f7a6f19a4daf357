"""`aftercheck models list|verify|fetch|pin`: which models there are, and proof that they are the released ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from aftercheck_worker import settings
from aftercheck_worker.cli import output
from aftercheck_worker.errors import UsageError
from aftercheck_worker.models import lock
from aftercheck_worker.models.store import Store

KINDS: dict[str, lock.Kind] = {"pair": "pair", "token": "token", "encoder": "encoder", "causal": "causal"}


def store() -> Store:
    """The store that the settings name."""
    found = settings.current()
    return Store(found.models_home, lock.read(found.models_lock))


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Models: pinned by models.lock, never downloaded by themselves.", no_args_is_help=True)
    app.add_typer(group, name="models")

    @group.command("list")
    def list_models(json: output.Json = False) -> None:
        """Show the known models, their revisions and which are installed.

        Example: aftercheck models list
        """
        found = store()
        rows: list[dict[str, object]] = [
            {
                "name": model.name,
                "kind": model.kind,
                "format": model.format,
                "revision": model.revision,
                "licence": model.licence,
                "mb": round(model.size / 1e6, 1),
                "state": found.state(model),
                "origin": model.origin,
            }
            for model in found.lock.models
        ]
        if json:
            output.as_json(rows)
        else:
            headings = ("name", "kind", "format", "revision", "licence", "mb", "state")
            output.table(headings, [[row[heading] for heading in headings] for row in rows])

    @group.command()
    def verify(name: Annotated[str | None, typer.Argument(help="All installed ones by default.")] = None) -> None:
        """Hash every file of the installed models; exit 78 when one is not what the lock says.

        Example: aftercheck models verify
        """
        found = store()
        chosen = [found.lock.find(name)] if name else [m for m in found.lock.models if found.state(m) != "absent"]
        for model in chosen:
            found.verify(model)
            output.say(f"{model.name}: {len(model.files)} files as released (revision {model.revision})")

    @group.command()
    def fetch(
        name: Annotated[str, typer.Argument(help="A name of `aftercheck models list`.")],
        source: Annotated[str, typer.Option("--from", help="A folder, or the http(s) URL before /<file name>.")],
    ) -> None:
        """Copy a model from where you say, check every hash, and install all of it or nothing.

        Example: aftercheck models fetch all-minilm-l6-v2 --from ./all-MiniLM-L6-v2
        """
        place = store().fetch(
            name, source, told=lambda file, size: output.say(f"{file}: {size / 1e6:.1f} MB, hash as locked")
        )
        output.say(f"Installed in {place}")

    @group.command("pin")
    def pin_model(
        folder: Annotated[Path, typer.Argument(help="A model folder that you trust as it is now.")],
        revision: Annotated[str, typer.Option(help="Commit or version of its publisher.")],
        name: Annotated[str | None, typer.Option(help="The folder's name by default.")] = None,
        kind: Annotated[str, typer.Option(help="pair, token, encoder or causal.")] = "pair",
        licence: Annotated[str, typer.Option(help="SPDX id of the weights.")] = "",
        origin: Annotated[str, typer.Option(help="Where it is published.")] = "",
        into: Annotated[Path | None, typer.Option("--into", help="Lock file to write to; stdout by default.")] = None,
    ) -> None:
        """Write the lock entry of a folder: revision, and sha256 and size of every file.

        Example: aftercheck models pin ./my-verifier --revision 3f1c2ab --into my-models.lock
        """
        if kind not in KINDS:
            raise UsageError(f"--kind {kind!r} is not known", why=f"kinds are {', '.join(KINDS)}", fix="choose one")
        entry = lock.pin(
            folder,
            name=name or folder.resolve().name,
            revision=revision,
            kind=KINDS[kind],
            licence=licence,
            origin=origin,
        )
        if into is None:
            sys.stdout.write(msgspec.json.format(msgspec.json.encode(entry), indent=1).decode() + "\n")
            return
        lock.write(into, entry)
        output.say(f"{entry.name} is pinned in {into}; point AFTERCHECK_MODELS_LOCK at it")
