"""`aftercheck fatigue`: does quality fall from step to step inside a session?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from aftercheck_worker import fatigue as statistics
from aftercheck_worker import settings
from aftercheck_worker.cli import fatigue_picture, output
from aftercheck_worker.cli.services import located, postgres
from aftercheck_worker.errors import AftercheckError
from aftercheck_worker.fatigue import FIRST_TURNS, Report, Slope
from aftercheck_worker.storage import sessions

LIMIT: Final = 200_000
"""Newest answers to look at: some seconds and 100 MB."""
STATEMENT: Final = "SET statement_timeout TO '60s'"
UNITS: Final = {"turn": "turn", "call_index": "model call", "context_tokens": "1,000 context tokens"}
NAMES: Final = {
    "faithfulness": "faithfulness",
    "citation_precision": "citation precision",
    "self_consistency": "self-consistency (1 - self-contradiction)",
}


class PictureRefused(AftercheckError):
    """The picture cannot be written."""

    exit_code = 65


def said(found: Report) -> list[str]:
    """What the slopes say in words; never more than a pattern."""
    lines = [_pattern(one) for one in found.slopes if one.falls]
    most = max((one.sessions for one in found.slopes), default=0)
    if most < found.minimum:
        missing = f"Not enough sessions: {most} of {found.minimum} with at least {found.turns + 1} turns."
        needed = "A session needs a session id from the app (aftercheck.set_session), and sampling by session:"
        return [f"{missing} {needed} aftercheck sampling set APP RATE --by session."]
    return lines or ["No measure falls inside sessions beyond chance."]


def _pattern(one: Slope) -> str:
    interval = f"99 % interval {one.low or 0:.3g} to {one.high or 0:.3g}, {one.sessions} sessions"
    fall = f"falls by {-(one.slope or 0):.3g} per {UNITS[one.against]}"
    return f"{one.app}: {NAMES[one.measure]} {fall} ({interval}). A pattern, not a cause."


def _row(one: Slope, minimum: int) -> tuple[object, ...]:
    if one.slope is None:
        why = f"not enough: {one.sessions} of {minimum}" if one.sessions else "not measured, or always the same step"
        return one.app, NAMES[one.measure], UNITS[one.against], None, why, one.sessions, None
    interval = f"{one.low:+.4f} to {one.high:+.4f}"
    partial = None if one.partial is None else f"{one.partial:+.4f}"
    return one.app, NAMES[one.measure], UNITS[one.against], f"{one.slope:+.4f}", interval, one.sessions, partial


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def fatigue(
        name: Annotated[str, typer.Option("--app", help="Only this app.")] = "",
        days: Annotated[int, typer.Option(min=1, max=365, help="How far back.")] = 7,
        turns: Annotated[
            int, typer.Option(min=2, max=50, help="K: the first K turns of longer sessions.")
        ] = FIRST_TURNS,
        picture: Annotated[Path | None, typer.Option(help="Write the curves to this SVG file.")] = None,
        json: output.Json = False,
    ) -> None:
        """Show whether quality falls by turn, by call and by context size.

        Reads the first K turns of sessions with at least K + 1, compares inside sessions only, and says nothing
        below 50 sessions. What it shows is a pattern, not a cause.

        Example: aftercheck fatigue --app finance-rag --picture fatigue.svg
        """
        with located(settings.current()) as where, postgres(where, name="fatigue") as connection:
            connection.execute(STATEMENT)
            since = datetime.now(UTC) - timedelta(days=days)
            answers = sessions.answers(connection, where.settings.tenant, since, app=name, limit=LIMIT)
        found = statistics.report(answers, turns=turns)
        if picture is not None:
            _write(picture, fatigue_picture.svg(found))
        if json:
            output.as_json(found)
            return
        headings = ["app", "measure", "per", "slope", "99 % interval", "sessions", "others held equal"]
        output.table(headings, [_row(one, found.minimum) for one in found.slopes])
        for line in said(found):
            output.say(line)
        if picture is not None:
            output.say(f"Picture: {picture}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PictureRefused(
            f"{path} cannot be written", why=str(error), fix="name a file in a folder that exists"
        ) from error
