"""`aftercheck demo`: real answers travel app -> Redis -> intake -> Celery -> Postgres -> /metrics, and you watch."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import FrameType
from typing import Annotated, Any, Final, cast

import msgspec
import psycopg
import typer
from psycopg.rows import TupleRow
from rich.text import Text

from aftercheck_worker import funnel, settings
from aftercheck_worker.cli import output, page, program, stats
from aftercheck_worker.cli.children import Children
from aftercheck_worker.cli.services import Located, located
from aftercheck_worker.demo import model, rows, scrape, verdicts
from aftercheck_worker.errors import AftercheckError
from aftercheck_worker.storage import database, migrate, totals

APP: Final = "demo-rag"
DEADLINE_SECONDS: Final = 90.0
POLL_SECONDS: Final = 0.1
LOOPBACK: Final = "127.0.0.1"
STYLES: Final = {"supported": "green", "contradicted": "red", "not_found": "red", "unclear": "yellow"}


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What the demo found. Seconds count from the start of the command; `page` answers with --stay only."""

    first_verdict_s: float | None
    seconds: float
    answers: list[dict[str, object]]
    agreement: str
    funnel: funnel.Funnel
    gauges: dict[str, float]
    metrics: str
    page: str


class Run:
    """One run of the demo."""

    def __init__(self, where: Located, *, quiet: bool) -> None:
        self.where, self.quiet = where, quiet
        self.began = time.monotonic()
        self.first: float | None = None
        self.rows = {row.id: row for row in rows.load()}
        self.traces: dict[str, str] = {}
        port = free_port(where.settings.exporter_host, where.settings.exporter_port)
        self.metrics = f"http://{where.settings.exporter_host}:{port}/metrics"
        self.page = f"http://{LOOPBACK}:{free_port(LOOPBACK, where.settings.api_port)}"
        self.environ = where.child_environ(
            AFTERCHECK_API_HOST=LOOPBACK,
            AFTERCHECK_API_PORT=self.page.rpartition(":")[2],
            AFTERCHECK_DEV="1",
            AFTERCHECK_EXPORTER_PORT=str(port),
            AFTERCHECK_EXPORTER_REFRESH_SECONDS="1",
            AFTERCHECK_LOG_FORMAT="text",
            AFTERCHECK_QUIET_SECONDS="1",
        )

    def say(self, message: str) -> None:
        """Tell the human what happens, with the time."""
        if not self.quiet:
            output.say(f"{time.monotonic() - self.began:5.1f} s  {message}")

    def ask(self) -> None:
        """Let the app answer every row. Runs in a thread, so that verdicts can be shown meanwhile."""
        asked = [{"id": row.id, "query": row.query, "context": row.context} for row in self.rows.values()]
        replies = {prompt(row): row.response for row in self.rows.values()}
        with model.serving(replies) as base_url:
            environ = {**self.environ, "OPENAI_BASE_URL": base_url, "NO_PROXY": "127.0.0.1,localhost"}
            with program.running("demo_app", asked, environ=environ) as lines:
                for line in lines:
                    if "trace_id" in line:
                        self.traces[str(line["trace_id"])] = str(line["id"])
                    elif line.get("dropped") or line.get("left"):
                        raise AftercheckError(
                            "Some spans did not leave the app", why=str(line), fix="see aftercheck doctor"
                        )
        self.say(f"the app has its {len(self.traces)} answers and is done; nothing in it waited for a check")

    def wait(
        self, children: Children, connection: psycopg.Connection[TupleRow], asking: Future[None]
    ) -> list[verdicts.Answer]:
        """Wait until every answer has a terminal state; show the first verdict at once."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            asked = asking.done()
            if asked:
                asking.result()
            found = verdicts.read(connection, list(self.traces))
            done = [answer for answer in found if answer.finished]
            if done and self.first is None:
                self.first = time.monotonic() - self.began
                self.say("first verdict:")
                if not self.quiet:
                    show([self.line(done[0])])
            if asked and {answer.trace_id for answer in done} >= set(self.traces) and len(done) == len(found):
                return found
            if time.monotonic() > deadline:
                raise AftercheckError(
                    f"After {DEADLINE_SECONDS:.0f} s only {len(done)} of {len(self.traces)} answers were checked",
                    why="the worker is slow or stands still",
                    fix=f"see the logs in {self.where.settings.home / 'logs'}",
                )
            children.check()
            time.sleep(POLL_SECONDS)

    def line(self, answer: verdicts.Answer) -> dict[str, object]:
        """One answer beside its human label."""
        row = self.rows[self.traces[answer.trace_id]]
        return {
            "trace_id": answer.trace_id,
            "row": row.id,
            "human": row.label,
            "outcome": answer.outcome or answer.state,
            "reason": answer.reason,
            "faithfulness": answer.faithfulness,
            "evaluator": answer.evaluator,
            "quality": answer.quality,
            "claims": [msgspec.structs.asdict(claim) for claim in answer.claims],
        }

    def gauges(self, children: Children, wanted: int) -> dict[str, float]:
        """Wait for the gauges that hold this run's answers."""
        deadline = time.monotonic() + 15
        while True:
            try:
                found = scrape.gauges(self.metrics, APP)
            except OSError:
                found = {}
            seen = sum(value for name, value in found.items() if name.startswith("aftercheck_window_evaluations"))
            if seen >= wanted or time.monotonic() > deadline:
                return found
            children.check()
            time.sleep(POLL_SECONDS)

    def counted(
        self, connection: psycopg.Connection[TupleRow], before: dict[totals.TotalKey, float]
    ) -> list[totals.Total]:
        """Totals of this run. Intake writes its counters every few seconds: wait for the traces of the run."""
        deadline = time.monotonic() + 10
        while True:
            now = totals.read(connection, self.where.settings.tenant)
            fresh = [row._replace(value=row.value - before.get(row.name, 0.0)) for row in now]
            sampled = sum(row.value for row in fresh if row.name.metric == totals.SAMPLED and row.name.app == APP)
            if sampled >= len(self.traces) or time.monotonic() > deadline:
                return fresh
            time.sleep(POLL_SECONDS)


def prompt(row: rows.Row) -> str:
    """The user's message as `programs/demo_app.py` writes it; the stub finds its answer by it."""
    return f"Context:\n{row.context}\n\nQuestion: {row.query}"


def free_port(host: str, wanted: int) -> int:
    """Return `wanted`, or any free port when that one is taken."""
    with socket.socket() as probe:
        try:
            probe.bind((host, wanted))
        except OSError:
            probe.bind((host, 0))
        return int(probe.getsockname()[1])


def show(lines: list[dict[str, object]]) -> None:
    """Print answers: the human label, ours, and one line per claim."""
    console = output.data()
    for line in lines:
        score = line["faithfulness"]
        head = Text(f"human: {line['human']:<13}", style="bold")
        head += Text(f"aftercheck: {line['outcome']}")
        head += Text(f"  faithfulness {score:.2f}" if isinstance(score, float) else f"  {line['reason'] or ''}")
        console.print(head)
        for claim in cast("list[dict[str, Any]]", line["claims"]):
            mark = Text(f"    {claim['status']:<13}", style=STYLES.get(claim["status"], ""))
            console.print(mark + Text(f"{claim['confidence']:.2f}  {shorten(claim['text'])}"))


def shorten(text: str, limit: int = 110) -> str:
    """One line of a claim."""
    clean = output.visible(text)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def agreement(lines: list[dict[str, object]]) -> str:
    """Count how often the outcome agrees with the human label, over the answers that have one of two outcomes."""
    pairs = [(line["human"] == "supported", line["outcome"] == "grounded") for line in lines if decided(line)]
    same = sum(human == ours for human, ours in pairs)
    wrong = sum(ours and not human for human, ours in pairs)
    return (
        f"{same} of {len(pairs)} agree with the human label; {wrong} called grounded though a human says unsupported;"
        f" {len(lines) - len(pairs)} without a verdict"
    )


def decided(line: dict[str, object]) -> bool:
    """True when the answer was found grounded or ungrounded."""
    return line["outcome"] in ("grounded", "ungrounded")


def perform(where: Located, *, quiet: bool) -> Iterator[tuple[Run, Children, Result]]:
    """Run the demo and yield once, while everything still runs."""
    run = Run(where, quiet=quiet)
    run.say(f"Postgres and Valkey run (embedded, data in {where.settings.home})")
    migrate.upgrade(where.database_url)
    with (
        database.connect(where.database_url, name="demo") as connection,
        Children(run.environ, logs=where.settings.home / "logs") as children,
    ):
        connection.autocommit = True
        tenant = where.settings.tenant
        before = {row.name: row.value for row in totals.read(connection, tenant)}
        children.start("worker")
        children.start("exporter")
        run.say("worker, intake and exporter start; the app asks its model (sampling 100 %, because this is a demo)")
        with ThreadPoolExecutor(1, "demo-app") as pool:
            answers = run.wait(children, connection, pool.submit(run.ask))
        lines = [run.line(answer) for answer in answers]
        run.say("all answers are checked; waiting for the next scrape")
        seen = run.gauges(children, wanted=sum(decided(line) for line in lines))
        fresh = run.counted(connection, before)
        result = Result(
            first_verdict_s=run.first,
            seconds=time.monotonic() - run.began,
            answers=lines,
            agreement=agreement(lines),
            funnel=funnel.build(fresh, stats.in_flight(connection, tenant, APP), app=APP),
            gauges=seen,
            metrics=run.metrics,
            page=run.page,
        )
        yield run, children, result


def tell(result: Result) -> None:
    """Print everything for the human."""
    console = output.data()
    console.print()
    show(result.answers)
    console.print()
    console.print(result.agreement)
    if any(line["quality"] == "smoke" for line in result.answers):
        console.print("These verdicts are quality=smoke: a word-overlap baseline, no trained verifier is installed.")
    console.print()
    output.table(["step", "count", "details"], funnel.lines(result.funnel), title="The funnel of this run")
    console.print()
    for name, value in result.gauges.items():
        console.print(f"{name} {value:g}", soft_wrap=True)
    worst = next((a for a in result.answers if a["outcome"] == "ungrounded"), result.answers[0])
    console.print()
    console.print(f"Next:  aftercheck explain {worst['trace_id']}    why one answer was judged as it was")
    console.print("       aftercheck demo --stay        the page: from an alert's link to the guilty claim")
    console.print("       aftercheck up                 the same on your own app: aftercheck.init('my-app')")
    console.print("       docs/tutorial/first-verdict.md")


def keep(children: Children, result: Result) -> None:
    """Serve the page too, say where it is, and stay until a signal or the end of a child."""
    children.start("serve")
    page.wait(result.page, children)
    output.say(f"Metrics: {result.metrics}")
    output.say(f"Page: {page.incident(result.page, APP)}")
    output.say("The page opens where an alert's link leads. Ctrl-C stops everything.")
    while True:
        children.check()
        time.sleep(0.5)


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def demo(
        stay: Annotated[bool, typer.Option("--stay", help="Keep all running, with the page, until Ctrl-C.")] = False,
        json: output.Json = False,
    ) -> None:
        """Watch labelled answers of a small RAG app being checked; needs no key, no GPU, no Docker.

        Example: aftercheck demo
        """
        signal.signal(signal.SIGTERM, _leave)
        # Never a configured database: the demo's answers must not mix with yours.
        found = settings.current().model_copy(update={"database_url": None, "redis_url": None, "broker_url": None})
        with located(found) as where:
            for _, children, result in perform(where, quiet=json):
                if json:
                    output.as_json(result)
                else:
                    tell(result)
                if stay:
                    keep(children, result)


def _leave(number: int, frame: FrameType | None) -> None:
    _ = frame
    raise SystemExit(128 + number)
