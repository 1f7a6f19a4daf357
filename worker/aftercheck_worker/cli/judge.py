"""`aftercheck judge parse`: what the reply ladder makes of replies. `judge stub`: a judge without a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from aftercheck_schemas import Passage
from aftercheck_worker.cli import output
from aftercheck_worker.cli.processes import stopped_by_signals
from aftercheck_worker.errors import InputError, UsageError
from aftercheck_worker.stages.judging import parse_reply


class Source(msgspec.Struct, frozen=True):
    """A source with its own name; a plain string is named s1, s2, ... by its place."""

    text: str
    source_id: str = ""


class Reply(msgspec.Struct, frozen=True):
    """One row of the file. Claim ids are c1, c2, ... in the order of `claims`."""

    id: str | int
    claims: list[str]
    context: list[str | Source]
    raw: str


def parsed(reply: Reply) -> dict[str, object]:
    """Judge one reply alone, without the re-ask.

    Returns:
        `{id, parse, verdicts}` in the words of the case file: a claim without a valid verdict has status `error`,
        a reply that is of no use has no verdicts.
    """
    passages = [_passage(source, number) for number, source in enumerate(reply.context, 1)]
    found = parse_reply(reply.raw, [f"c{number}" for number in range(1, len(reply.claims) + 1)], passages)
    verdicts = [{"claim_id": claim.claim_id, "status": claim.status or "error"} for claim in found.claims]
    return {"id": reply.id, "parse": found.parse, "verdicts": verdicts}


def register(app: typer.Typer) -> None:
    """Add the command group."""
    group = typer.Typer(help="The LLM judge: replies and endpoints.", no_args_is_help=True)

    @group.command("parse")
    def parse(
        file: Annotated[Path, typer.Argument(help="Rows {id, claims, context, raw}; - reads stdin.")],
    ) -> None:
        """Show what each reply of a judge is read as; one JSON line {id, parse, verdicts} per row.

        Example: aftercheck judge parse replies.jsonl
        """
        for reply in _rows(file):
            sys.stdout.write(json.dumps(parsed(reply)) + "\n")

    @group.command("stub")
    def stub(
        mode: Annotated[str, typer.Option(help="honest, obedient, or faulty: one fault after the other.")] = "honest",
        fault: Annotated[list[str] | None, typer.Option(help="Faults of --mode faulty, in order; all.")] = None,
        port: Annotated[int, typer.Option(help="0 takes any free port.", min=0, max=65535)] = 8089,
        accepts: Annotated[str, typer.Option(help="json_schema, json_object or plain.")] = "json_schema",
        latency: Annotated[float, typer.Option(help="Seconds per reply.", min=0)] = 0.0,
        key: Annotated[str, typer.Option(help="Bearer token that it asks for; any.", envvar="STUB_KEY")] = "",
    ) -> None:
        """Serve a judge without a model on this machine: try the configuration, or watch faults being handled.

        Example: aftercheck judge stub --mode faulty --fault server_error --fault none
        """
        _serve(mode, fault or [], port, accepts, latency, key)

    app.add_typer(group, name="judge")


def _serve(mode: str, faults: list[str], port: int, accepts: str, latency: float, key: str) -> None:
    # Imported here: a web server would cost every other command a quarter of a second.
    from aftercheck_worker.judge import stub
    from aftercheck_worker.judge.stub import server
    from aftercheck_worker.models.openai_compatible import MODES

    wrong = [name for name in faults if name not in stub.FAULTS and name != "none"]
    if mode not in stub.MODES or accepts not in MODES or wrong:
        raise UsageError(
            f"There is no {' '.join(wrong) or (mode if mode not in stub.MODES else accepts)!r}",
            why="the stub does not know it",
            fix=f"--mode {'|'.join(stub.MODES)}, --accepts {'|'.join(MODES)}, --fault {'|'.join(stub.FAULTS)}|none",
        )
    app = server.application(stub.Stub(mode, faults=faults), accepts=accepts, key=key, latency=latency)
    server.run(app, host="127.0.0.1", port=port, stop=stopped_by_signals(), ready=_tell)


def _tell(url: str) -> None:
    output.say(f"judge: {url}    try it: AFTERCHECK_JUDGE_URL={url}")


def _rows(file: Path) -> Iterator[Reply]:
    for number, line in enumerate(_lines(file), 1):
        if not line.strip():
            continue
        try:
            # Not msgspec's own reader: it refuses a whole row for a lone surrogate, which models do write.
            yield msgspec.convert(json.loads(line), Reply)
        except (ValueError, RecursionError, msgspec.ValidationError) as error:
            raise InputError(
                f"Line {number} of {file} is not a reply",
                why=str(error)[:200],
                fix="rows: {id, claims, context, raw}",
            ) from None


def _lines(file: Path) -> list[str]:
    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read", why=str(error), fix="name a UTF-8 file of JSON lines") from None


def _passage(source: str | Source, number: int) -> Passage:
    if isinstance(source, str):
        return Passage(source_id=f"s{number}", text=source)
    return Passage(source_id=source.source_id or f"s{number}", text=source.text)
