"""`python -m grafana.rehearsal`: live data for the documentation's pictures, and a check of every expression.

Two apps answer for some minutes, and one of them gets a bad prompt version in the middle. Their evaluations are drawn
at random and written through the real ledger; from there on everything is real: Postgres, exporter, Prometheus with
the shipped rules, Alertmanager. Every expression of every dashboard is then asked of that Prometheus.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import psycopg
import yaml
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction, Passage
from aftercheck_schemas.evaluation import CitationFinding, Claim, Evaluation, Verdict
from aftercheck_schemas.interaction import Versions
from aftercheck_worker import embedded
from aftercheck_worker.storage import database, evaluator, ledger, migrate, results
from deploy import monitor
from grafana import picture
from grafana.boards import DASHBOARDS, fatigue, overview

ROOT: Final = Path(__file__).parents[1]
VERSION: Final = "1" * 64
TURNS: Final = 6
TALKING: Final = 8
"""Sessions that go on at the same time."""
CLAIMS: Final = 4


def drawn(chance: random.Random, app: str, turn: int, quality: float) -> Evaluation:
    """An evaluation of four claims, each supported with probability `quality`, a little less with every turn."""
    right = min(0.98, max(0.02, quality - (0.03 * (turn - 1) if app == "support-chat" else 0.0)))
    statuses = ["supported" if chance.random() < right else "not_found" for _ in range(CLAIMS)]
    share = statuses.count("supported") / CLAIMS
    claims = tuple(Claim(id=f"c{n}", text="Yes.", start=0, end=4) for n in range(CLAIMS))
    return Evaluation(
        trace_id="",
        span_id="",
        outcome="grounded" if share == 1 else "ungrounded",
        claims=claims,
        verdicts=tuple(
            Verdict(claim_id=claim.id, status="supported" if status == "supported" else "not_found", confidence=0.9)
            for claim, status in zip(claims, statuses, strict=True)
        ),
        citations=(
            CitationFinding(claim_id="c0", label="1", source_id="a", exists=True, entails=chance.random() < right),
        ),
        faithfulness=share,
        hallucinated=share < 1,
        flagged=share < 1,
        labels=("self_contradiction",) if chance.random() < 0.02 * turn else (),
        evaluator="rehearsal",
        evaluator_version=VERSION,
    )


def write(
    connection: psycopg.Connection[TupleRow], chance: random.Random, number: int, quality: dict[str, float]
) -> None:
    """Write one answer of each app."""
    for app, mean in quality.items():
        session, turn = number % TALKING + TALKING * (number // (TALKING * TURNS)), number // TALKING % TURNS + 1
        bad = mean < 0.8
        said = Interaction(
            trace_id=f"{chance.getrandbits(128) or 1:032x}",
            span_id=f"{chance.getrandbits(64) or 1:016x}",
            app=app,
            environment="production",
            question=f"Question {number}",
            answer="Yes.",
            passages=(Passage(source_id="a", text=f"Passage {number}"),),
            model="model-l" if app == "finance-rag" else "model-s",
            versions=Versions(prompt="v2" if bad else "v1"),
            session_id=f"s{session}",
            turn=turn,
            call_index=1 + turn % 2,
            context_tokens=600 * turn + chance.randrange(400),
            answered_at=time.time_ns(),
        )
        new = ledger.NewAnswer(
            tenant="default",
            trace_id=said.trace_id,
            span_id=said.span_id,
            app=app,
            answered_at=said.answered_at,
            body=msgspec.json.encode(said),
        )
        found = msgspec.structs.replace(
            drawn(chance, app, turn, mean),
            trace_id=said.trace_id,
            span_id=said.span_id,
        )
        rows = ledger.insert(connection, [new])
        work = ledger.claim(connection, [row.evaluation_id for row in rows])[0]
        results.finalise(connection, [results.Finished(work=work, evaluation=found, labels=results.Labels.of(said))])
    connection.commit()


def traffic(url: str, minutes: float, per_second: float, seed: int) -> None:
    """Write answers for so long; in the middle third finance-rag's are bad."""
    chance, began = random.Random(seed), time.monotonic()  # noqa: S311 - a seeded rehearsal
    with database.connect(url, name="rehearsal") as connection:
        evaluator.remember(connection, name="rehearsal", version=VERSION, spec={"quality": "standard"})
        connection.commit()
        for number in itertools.count():
            due = number / per_second
            if due > 60 * minutes:
                return
            time.sleep(max(0.0, began + due - time.monotonic()))
            bad = minutes * 60 / 3 <= due < minutes * 60 * 0.55
            write(connection, chance, number, {"finance-rag": 0.55 if bad else 0.96, "support-chat": 0.95})


@contextmanager
def chain(home: Path, urls: dict[str, str], ports: dict[str, int], node_exporter: str) -> Generator[str]:
    """Run exporter, node-exporter where there is one, Prometheus and Alertmanager; yield Prometheus' address."""
    with ExitStack() as stack:
        jobs = [([sys.executable, "-m", "aftercheck_worker.cli", "exporter"], {**os.environ, **urls})]
        if node_exporter:
            jobs.append(([node_exporter, f"--web.listen-address=127.0.0.1:{ports['node']}"], dict(os.environ)))
        for command, environ in jobs:
            process = subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)  # noqa: S603 - our own
            stack.callback(process.wait, 20)
            stack.callback(process.terminate)
        config: Any = yaml.safe_load(
            monitor.prometheus_config(f"127.0.0.1:{ports['exporter']}", f"127.0.0.1:{ports['alertmanager']}")
        )
        node = [{"targets": [f"127.0.0.1:{ports['node']}"]}]
        config["scrape_configs"].append({"job_name": "node", "static_configs": node})
        (home / "prometheus.yml").write_text(yaml.safe_dump(config))
        key = home / "key"
        key.write_text(monitor.STAND_IN_KEY)
        nowhere = "http://127.0.0.1:9/v2/enqueue"
        (home / "alertmanager.yml").write_text(monitor.alertmanager_config(key, nowhere))
        stack.enter_context(monitor.servers(home, ports))
        yield f"http://127.0.0.1:{ports['prometheus']}"


def empty(prometheus: str, span: tuple[float, float]) -> list[str]:
    """Panels without any series. Raises what Prometheus refuses."""
    return [
        f"{board.uid}: {panel.title}"
        for board in DASHBOARDS
        for row in board.rows
        for panel in row.panels
        if not [one for query in panel.queries for one in picture.read(prometheus, query, span, instant=False)]
    ]


def main() -> None:
    """Rehearse, check, draw."""
    parser = argparse.ArgumentParser(prog="python -m grafana.rehearsal", description=__doc__)
    parser.add_argument("--minutes", type=float, default=18)
    parser.add_argument("--per-second", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--node-exporter", default="", help="path of prometheus-node-exporter")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/images")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that the children are ended too
    ports = {name: monitor.free_port() for name in ("exporter", "prometheus", "alertmanager", "node")}
    with tempfile.TemporaryDirectory() as folder, embedded.start(Path(folder) / "data") as services:
        if services.database_url is None or services.redis_url is None:
            raise RuntimeError("the embedded services did not start")
        migrate.upgrade(services.database_url)
        urls = {"DATABASE_URL": services.database_url, "REDIS_URL": services.redis_url}
        urls |= {"AFTERCHECK_HOME": folder, "AFTERCHECK_EXPORTER_PORT": str(ports["exporter"])}
        with chain(Path(folder), urls, ports, chosen.node_exporter) as prometheus:
            traffic(services.database_url, chosen.minutes, chosen.per_second, chosen.seed)
            time.sleep(15)  # the last refresh, scrape and evaluation
            end, minutes = time.time(), chosen.minutes
            for panel in empty(prometheus, (end - 60 * minutes, end)):
                sys.stdout.write(f"without data: {panel}\n")
            chosen.out.mkdir(parents=True, exist_ok=True)
            picture.draw(overview.OVERVIEW, prometheus, end, minutes, chosen.out / "dashboard-overview.png", OVERVIEW)
            picture.draw(
                fatigue.FATIGUE_BOARD, prometheus, end, minutes, chosen.out / "dashboard-fatigue.png", FATIGUE
            )


OVERVIEW: Final = (
    "Faithfulness and its upper bound",
    "Hallucination rate",
    "Answers in these 5 minutes",
    "CPU",
    "Memory",
    "Oldest waiting entry",
)
FATIGUE: Final = (
    "Faithfulness by turn",
    "Citation precision by turn",
    "Self consistency by turn",
    "Faithfulness by model call",
    "Faithfulness by context size",
    "Citation precision by context size",
)


if __name__ == "__main__":
    main()
