"""`aftercheck evaluate FILE.jsonl --out FILE`: the pipeline over a file, without services."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import msgspec
import typer

from aftercheck_worker import evaluate as core
from aftercheck_worker import evaluators, settings
from aftercheck_worker.cli import output
from aftercheck_worker.errors import InputError, UsageError

if TYPE_CHECKING:
    from aftercheck_worker.judge.offline import OfflineJudge

EXIT_BELOW = 1


class Summary:
    """Counts over the rows, and the means that `--fail-under` compares; None where nothing was measured."""

    def __init__(self) -> None:
        self.rows = 0
        self.bad: list[core.BadRow] = []
        self.outcomes: dict[str, int] = {}
        self.flagged = 0
        self.decided_by: dict[str, int] = {}
        self.failures: dict[str, int] = {}
        self.judge: OfflineJudge | None = None
        self._sums: dict[str, tuple[float, int]] = dict.fromkeys(core.GATES, (0.0, 0))

    def add(self, done: core.Done) -> None:
        """Count one evaluated row."""
        found = done.evaluation
        self.rows += 1
        self.flagged += found.flagged
        self.outcomes[found.outcome] = self.outcomes.get(found.outcome, 0) + 1
        self.decided_by[found.decided_by] = self.decided_by.get(found.decided_by, 0) + 1
        for failure in found.failures:
            self.failures[failure.reason] = self.failures.get(failure.reason, 0) + 1
        for name, (total, count) in self._sums.items():
            value: float | None = getattr(found, core.GATES[name])
            if value is not None:
                self._sums[name] = (total + value, count + 1)

    def mean(self, name: str) -> float | None:
        """Mean of a metric over the rows that have it."""
        total, count = self._sums[name]
        return total / count if count else None

    def as_dict(self, evaluator: evaluators.Evaluator) -> dict[str, object]:
        """All of it, for `--json`."""
        return {
            "rows": self.rows,
            "bad_rows": [msgspec.structs.asdict(row) for row in self.bad],
            "outcomes": self.outcomes,
            "flagged": self.flagged,
            "means": {name: self.mean(name) for name in self._sums},
            "measured": {name: count for name, (_, count) in self._sums.items()},
            "decided_by": self.decided_by,
            "failures": self.failures,
            "judge": self.judge
            and {
                "calls": self.judge.calls,
                "prompt_tokens": self.judge.prompt_tokens,
                "completion_tokens": self.judge.completion_tokens,
            },
            "evaluator": evaluator.name,
            "evaluator_version": evaluator.version,
            "quality": evaluator.quality,
        }


def parse_gate(text: str) -> tuple[str, float]:
    """Read `faithfulness=0.85`.

    Raises:
        UsageError: the metric is unknown or the number is not in 0..1.
    """
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if name not in core.GATES or not 0 <= value <= 1:
        raise UsageError(
            f"--fail-under {text!r} is not understood", why=f"metrics are {', '.join(core.GATES)}, values 0..1",
            fix="write --fail-under faithfulness=0.85",
        )  # fmt: skip
    return name, value


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def evaluate(
        file: Annotated[Path, typer.Argument(help="Rows {id, query, context, response}; - reads stdin.")],
        out: Annotated[Path | None, typer.Option("--out", help="Verdicts as JSONL; stdout by default.")] = None,
        evaluator: Annotated[str | None, typer.Option(help="default, lexical-v1, ...")] = None,
        fail_under: Annotated[
            list[str] | None, typer.Option("--fail-under", help="metric=value; a lower mean exits 1.")
        ] = None,
        judge: Annotated[
            bool, typer.Option("--judge", help="Let the judge of AFTERCHECK_JUDGE_URL decide what is uncertain.")
        ] = False,
        json: output.Json = False,
    ) -> None:
        """Check a file of answers without any service.

        Example: aftercheck evaluate answers.jsonl --out verdicts.jsonl --fail-under faithfulness=0.85
        """
        gates = [parse_gate(text) for text in fail_under or []]
        if json and out is None:
            raise UsageError("--json needs --out", why="both would write to stdout", fix="add --out FILE")
        found = settings.current()
        bundle = evaluators.resolve(evaluator or found.evaluator, found)
        summary = Summary()
        with (
            _reader(file) as lines,
            _writer(out) as sink,
            _judging(found, bundle) if judge else nullcontext() as asked,
        ):
            _run(lines, sink, bundle, summary, asked)
            summary.judge = asked
        if json:
            output.as_json(summary.as_dict(bundle))
        else:
            _tell(summary, bundle)
        raise typer.Exit(_exit_code(summary, gates))


def _judging(found: settings.Settings, bundle: evaluators.Evaluator) -> OfflineJudge:
    # Imported here: a judge's client costs every other run half a second.
    from aftercheck_worker.judge import back_end, offline

    generator = back_end.build(found)
    if generator is None:
        raise UsageError(
            "--judge has nobody to ask", why="AFTERCHECK_JUDGE_URL is not set", fix="set it, e.g. to a local endpoint"
        )
    return offline.OfflineJudge(found, bundle, generator)


def _run(
    lines: BinaryIO, sink: BinaryIO, bundle: evaluators.Evaluator, summary: Summary, judge: OfflineJudge | None
) -> None:
    encoder = msgspec.json.Encoder()
    for result in core.evaluate(lines, bundle, judge=judge.judge if judge is not None else None):
        if isinstance(result, core.BadRow):
            summary.bad.append(result)
            output.error(f"line {result.line}: {result.why}")
            continue
        summary.add(result)
        sink.write(encoder.encode(core.output(result, judged=judge is not None)) + b"\n")
    sink.flush()


def _exit_code(summary: Summary, gates: Sequence[tuple[str, float]]) -> int:
    code = 0
    for name, least in gates:
        mean = summary.mean(name)
        if mean is None:
            output.error(f"{name} was measured on no row, {least:g} was asked for")
            code = EXIT_BELOW
        elif mean < least:
            output.error(f"{name} is {mean:.4f}, below {least:g}")
            code = EXIT_BELOW
    if summary.bad:
        output.error(f"{len(summary.bad)} of {summary.rows + len(summary.bad)} rows could not be read")
        return InputError.exit_code
    return code


def _tell(summary: Summary, bundle: evaluators.Evaluator) -> None:
    outcomes = ", ".join(f"{name} {count}" for name, count in sorted(summary.outcomes.items()))
    mean = summary.mean("faithfulness")
    output.say(
        f"{summary.rows} rows by {bundle.name} (quality={bundle.quality}): {outcomes or 'no rows'}; "
        f"flagged {summary.flagged}; mean faithfulness {output.cell(mean)}"
    )
    if summary.judge is not None:
        decided = ", ".join(f"{name} {count}" for name, count in sorted(summary.decided_by.items()))
        failed = ", ".join(f"{name} {count}" for name, count in sorted(summary.failures.items()))
        asked = summary.judge
        output.say(
            f"last word: {decided or 'nobody'}; judge failures: {failed or 'none'}; {asked.calls} calls,"
            f" {asked.prompt_tokens} prompt and {asked.completion_tokens} completion tokens"
        )


@contextmanager
def _reader(path: Path) -> Generator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = path.open("rb")
    except OSError as error:
        raise InputError(f"Cannot read {path}", why=error.strerror or "", fix="check the path") from None
    with stream:
        yield stream


@contextmanager
def _writer(path: Path | None) -> Generator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        return
    try:
        stream = path.open("wb")
    except OSError as error:
        raise InputError(f"Cannot write {path}", why=error.strerror or "", fix="check the folder") from None
    with stream:
        yield stream
