"""`aftercheck explain TRACE_ID`: why this verdict, or why none (R5, U32)."""

from __future__ import annotations

from typing import Annotated, Final, cast

import typer
from rich.console import Console
from rich.text import Text

from aftercheck_worker import settings
from aftercheck_worker.cli import output
from aftercheck_worker.cli.services import located, postgres
from aftercheck_worker.errors import UsageError
from aftercheck_worker.storage import explain as stories
from aftercheck_worker.storage.explain import AnswerStory, ClaimStory, EvaluationStory, Story

EXIT_UNKNOWN: Final = 1
STYLES: Final = {"supported": "green", "contradicted": "bold red", "not_found": "red", "unclear": "yellow"}


def normal(trace_id: str) -> str:
    """Return the id as it is stored: 32 lower-case hex digits; UUID dashes and `0x` are accepted.

    Raises:
        UsageError: it is none.
    """
    plain = trace_id.strip().lower().removeprefix("0x").replace("-", "")
    if len(plain) != 32 or any(digit not in "0123456789abcdef" for digit in plain):
        raise UsageError(
            f"{trace_id[:60]!r} is no trace id", why="it needs 32 hex digits", fix="copy it from a log or the demo"
        )
    return plain


def show(story: Story, console: Console) -> None:
    """Print a story for humans."""
    console.print(Text(f"trace {story.trace_id}", style="bold"))
    if story.why:
        console.print(story.why)
    for answer in story.answers:
        _answer(answer, console)
    for thumb in story.feedback:
        said = "down" if thumb.value < 0 else "up"
        console.print(f"feedback: {thumb.kind} {said} ({thumb.value:g}) {output.visible(thumb.comment or '')}")
    for letter in story.dead_letters:
        state = letter.resolution or "open"
        console.print(f"dead letter {letter.id}: {letter.reason} {output.visible(letter.detail)} ({state})")


def _answer(answer: AnswerStory, console: Console) -> None:
    weight = f", stands for {answer.weight:g} traces" if answer.weight != 1 else ""
    head = f"answer span {answer.span_id}  app {output.visible(answer.app)}  origin {answer.origin}{weight}"
    console.print(head)
    console.print(
        f"  state {answer.state}{f' ({answer.reason})' if answer.reason else ''}, attempts {answer.attempts}"
    )
    if answer.why:
        console.print(f"  {answer.why}")
    body = cast("dict[str, object]", answer.interaction) if isinstance(answer.interaction, dict) else {}
    for name in ("question", "answer"):
        text = body.get(name)
        if isinstance(text, str) and text:
            console.print(f"  {name}: {output.visible(text)}", soft_wrap=True)
    if body:
        passages = body.get("passages")
        count = len(cast("list[object]", passages)) if isinstance(passages, list) else 0
        console.print(f"  passages: {count}, found by {body.get('context_source', 'none')}")
    for evaluation in answer.evaluations:
        _evaluation(evaluation, console)


def _evaluation(found: EvaluationStory, console: Console) -> None:
    run = "" if found.run_id == "online" else f"  run {found.run_id}"
    console.print(Text(f"  {found.outcome}", style="bold") + Text(f"{_scores(found)}{run}"))
    console.print(f"  by {found.evaluator} {found.evaluator_version[:12]}, quality={found.quality}")
    if not found.complete:
        console.print("  the trace was incomplete: spans were dropped or came too late")
    for claim in found.claims:
        _claim(claim, console)


def _scores(found: EvaluationStory) -> str:
    parts: list[str] = []
    if found.faithfulness is not None:
        upper = found.faithfulness_upper
        bound = f"..{upper:.2f}" if upper is not None and upper != found.faithfulness else ""
        parts.append(f"faithfulness {found.faithfulness:.2f}{bound}")
    if found.supported_probability is not None:
        parts.append(f"p(supported) {found.supported_probability:.2f}")
    parts.append(f"risk {found.risk:.2f} -> {found.action}")
    if found.reason:
        parts.append(found.reason)
    return "  " + "  ".join(parts)


def _claim(claim: ClaimStory, console: Console) -> None:
    if claim.status is None:
        label = Text(f"    {'skipped':<13}", style="dim")
        console.print(
            label + Text(f"{output.visible(claim.text)}  ({claim.skip_reason or 'no verdict'})"), soft_wrap=True
        )
        return
    label = Text(f"    {claim.status:<13}", style=STYLES.get(claim.status, ""))
    sure = f"{claim.confidence:.2f}" if claim.confidence is not None else output.DASH
    tail = f"  [{claim.type}, {claim.severity}{f', {claim.reason}' if claim.reason else ''}, {claim.decided_by}]"
    console.print(label + Text(f"{sure}  {output.visible(claim.text)}{tail}"), soft_wrap=True)
    for evidence in claim.evidence:
        place = f"{output.visible(evidence.source_id)}[{evidence.start}:{evidence.end}] {evidence.score:.2f}"
        console.print(Text(f"      {place}  {output.visible(evidence.text)}", style="dim"), soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def explain(
        trace_id: Annotated[str, typer.Argument(help="32 hex digits.")],
        json: output.Json = False,
    ) -> None:
        """Show why a trace has this verdict, or why it has none.

        Example: aftercheck explain 4bf92f3577b34da6a3ce929d0e0e4736
        """
        wanted = normal(trace_id)
        with located(settings.current()) as where, postgres(where, name="explain") as connection:
            story = stories.explain(connection, where.settings.tenant, wanted)
        if json:
            output.as_json(story)
        else:
            show(story, output.data())
        if not story.answers and not story.dead_letters and story.erased_at is None:
            raise typer.Exit(EXIT_UNKNOWN)
