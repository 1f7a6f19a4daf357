"""`aftercheck push FILE.jsonl`: stored answers through the whole real path, with origin replay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import Progress

from aftercheck_worker import settings
from aftercheck_worker.cli import output, program
from aftercheck_worker.cli.services import located
from aftercheck_worker.errors import AftercheckError, InputError

MAX_LINE_BYTES = 8 * 1024 * 1024


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage with more than its text."""

    text: str
    source_id: str | None = None
    kind: str = "context"
    trust: float = 1.0


class PushRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the file. `answer` may be called `response`; `context` is a text or a list."""

    query: str | None = None
    context: str | list[str | Document] | None = None
    answer: str | None = None
    response: str | None = None
    model: str | None = None


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent: spans that Redis took, spans that did not leave, spans lost by reason."""

    rows: int
    flushed: int
    left: int
    dropped: dict[str, int]
    trace_ids: list[str]


def read(file: Path) -> Iterator[dict[str, object]]:
    """Yield what `programs/replay.py` takes, one per line of the file.

    Raises:
        InputError: the file or one of its lines cannot be read; the message names the line.
    """
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _row(file, number, line)
    except OSError as error:
        raise InputError(f"{file} cannot be read", why=error.strerror or str(error), fix="check the path") from None


def _row(file: Path, number: int, line: bytes) -> dict[str, object]:
    if len(line) > MAX_LINE_BYTES:
        raise InputError(f"{file}:{number} is longer than 8 MiB", why="no trace may be", fix="split or shorten it")
    try:
        row = msgspec.json.decode(line, type=PushRow)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file}:{number} is not a row", why=str(error), fix='write {"query": ..., "context": ..., "answer": ...}'
        ) from None
    answer = row.answer if row.answer is not None else row.response
    if not answer:
        raise InputError(f"{file}:{number} has no answer", why='"answer" or "response" is missing', fix="add it")
    context = [row.context] if isinstance(row.context, str) else row.context
    return {"query": row.query, "context": msgspec.to_builtins(context), "answer": answer, "model": row.model}


def send(rows: list[dict[str, object]], *, app: str, environ: dict[str, str], quiet: bool) -> Sent:
    """Send the rows and wait until Redis has them.

    Raises:
        AftercheckError: some did not arrive; nothing is resent.
    """
    ids: list[str] = []
    last: program.Line = {}
    with (
        Progress(console=output.humans(), transient=True, disable=quiet) as progress,
        program.running("replay", rows, arguments=[app], environ=environ) as answers,
    ):
        bar = progress.add_task("sending", total=len(rows))
        for line in answers:
            if "trace_id" in line:
                ids.append(str(line["trace_id"]))
                progress.advance(bar)
            else:
                last = line
    told = msgspec.convert(last, type=_Flushed)
    sent = Sent(rows=len(rows), flushed=told.flushed, left=told.left, dropped=told.dropped, trace_ids=ids)
    if sent.left or sent.dropped:
        raise AftercheckError(
            f"{sent.left + sum(sent.dropped.values())} of the spans of {sent.rows} rows did not arrive",
            why=", ".join(f"{reason}: {count}" for reason, count in sent.dropped.items()) or "Redis took too long",
            fix="check `aftercheck doctor`, then push again",
        )
    return sent


class _Flushed(msgspec.Struct):
    flushed: int = 0
    left: int = 0
    dropped: dict[str, int] = {}


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def push(
        file: Annotated[Path, typer.Argument(help="JSON lines of query, context, answer.")],
        name: Annotated[str, typer.Option("--app", help="App name on the traces.")] = "replay",
        json: output.Json = False,
    ) -> None:
        """Send stored answers as real traces; origin is replay, so no gauge moves.

        Example: aftercheck push answers.jsonl --app finance-rag
        """
        rows = list(read(file))
        if not rows:
            raise InputError(f"{file} has no rows", why="nothing to send", fix="write one JSON object per line")
        with located(settings.current()) as where:
            sent = send(rows, app=name, environ=where.child_environ(REDIS_URL=where.redis_url), quiet=json)
        if json:
            output.as_json(sent)
            return
        output.say(f"{sent.rows} answers are on the stream (origin replay: every one is checked, no gauge moves).")
        output.say(f"Next: aftercheck stats; aftercheck explain {sent.trace_ids[0]}")
