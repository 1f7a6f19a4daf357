"""`aftercheck recheck`: judge answers already given again, with the evaluator of today (R54)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from aftercheck_worker import evaluators, pipeline, settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.services import located, postgres
from aftercheck_worker.errors import UsageError
from aftercheck_worker.storage import rechecks

_UNITS = {"m": 60, "h": 3600, "d": 86_400}


def since(word: str) -> datetime:
    """Read `90m`, `6h`, `2d`, or an ISO moment.

    Raises:
        UsageError: it is neither.
    """
    short = re.fullmatch(r"([0-9]{1,5})([mhd])", word)
    if short:
        return datetime.now(UTC) - timedelta(seconds=int(short[1]) * _UNITS[short[2]])
    try:
        found = datetime.fromisoformat(word)
    except ValueError:
        raise UsageError(
            f"{word[:40]!r} is no time", why="it needs 90m, 6h, 2d or ISO 8601", fix="e.g. --since 6h"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def recheck(
        since_: Annotated[str, typer.Option("--since", help="90m, 6h, 2d or ISO 8601.")],
        name: Annotated[str, typer.Option("--app", help="Only this app.")] = "",
        model: Annotated[str, typer.Option(help="Only answers of this model.")] = "",
        retriever: Annotated[str, typer.Option(help="Only answers of this retriever version.")] = "",
        json: output.Json = False,
    ) -> None:
        """Judge answers already given again; gauges, rates and alerts do not move.

        Prints the answers whose outcome changed. The new verdicts are kept beside the old ones as a run.

        Example: aftercheck recheck --since 6h --retriever v7
        """
        start, found = since(since_), settings.current()
        run = f"recheck-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
        checked, changed, after = 0, list[dict[str, object]](), 0
        with located(found) as where, postgres(where, name="recheck") as connection:
            evaluator = evaluators.resolve(found.evaluator, where.settings)
            while batch := rechecks.find(
                connection, found.tenant, start, app=name, model=model, retriever=retriever, after=after
            ):
                done = pipeline.evaluate_batch([one.interaction for one in batch], evaluator)
                rechecks.keep(connection, run, list(zip(batch, done, strict=True)))
                connection.commit()
                checked, after = checked + len(batch), batch[-1].evaluation_id
                changed += [
                    {"trace_id": new.trace_id, "span_id": new.span_id, "before": old.outcome, "after": new.outcome}
                    for old, new in zip(batch, done, strict=True)
                    if old.outcome != new.outcome
                ]
        if json:
            output.as_json({"run_id": run, "checked": checked, "changed": changed})
            return
        output.table(["trace", "before", "after"], [(c["trace_id"], c["before"], c["after"]) for c in changed])
        output.say(f"{checked} answers judged again, {len(changed)} outcomes changed (run {run}).")
