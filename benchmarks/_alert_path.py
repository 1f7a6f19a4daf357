"""The page, end to end and timed: answers -> ledger -> exporter -> Prometheus -> Alertmanager -> PagerDuty.

Real: claims and a word-overlap verifier (called `standard` here, so that it may page), Postgres, Valkey, the
exporter's process, Prometheus and Alertmanager with the shipped configuration and rules. Only ports, paths and the
PagerDuty address are replaced. Not in it: producer and Celery, which other end-to-end tests cover.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil
import psycopg
import yaml
from psycopg.rows import TupleRow

from aftercheck_schemas import Interaction, Passage
from aftercheck_worker import embedded, pipeline
from aftercheck_worker.evaluators import Evaluator, assemble
from aftercheck_worker.models.lexical import LexicalScorer
from aftercheck_worker.stages.scoring import Policy
from aftercheck_worker.stages.verification import LexicalVerifier
from aftercheck_worker.storage import database, ledger, migrate, results
from benchmarks._pagerduty import Event, PagerDuty

ROOT: Final = Path(__file__).parents[1]
APP: Final = "proof-rag"
SENTENCES: Final = 5
SUPPORTED: Final = tuple(
    f"The {word} valve of the plant opens at noon." for word in ("red", "blue", "old", "new", "big")
)
INVENTED: Final = tuple(
    f"Marble {word} sing quietly beneath Neptune." for word in ("owls", "cups", "nets", "figs", "keys")
)


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """What the proof measured, in seconds and MiB."""

    trigger_s: float
    resolve_s: float
    rss_mb: float
    events: tuple[str, ...]
    dedup_keys: tuple[str, ...]
    refused: tuple[str, ...]


def evaluator() -> Evaluator:
    """Word overlap, called standard: only this proof may page with it."""
    return assemble("proof", LexicalVerifier(LexicalScorer()), policy=Policy(), quality="standard")


def answer(chance: random.Random, mean: float, number: int) -> Interaction:
    """An answer of five sentences, each supported with probability `mean`."""
    told = [(SUPPORTED if chance.random() < mean else INVENTED)[place] for place in range(SENTENCES)]
    return Interaction(
        trace_id=f"{chance.getrandbits(128) or 1:032x}",
        span_id=f"{number:016x}",
        app=APP,
        environment="production",
        question="When do the valves open?",
        answer=" ".join(told),
        passages=tuple(Passage(source_id=str(n), text=text) for n, text in enumerate(SUPPORTED, 1)),
        context_source="recorded",
        context_confidence=1.0,
        answered_at=time.time_ns(),
    )


class Traffic:
    """Writes evaluated answers at a steady rate from a thread; `mean` may be changed while it runs."""

    def __init__(self, url: str, *, per_second: float, mean: float, seed: int) -> None:
        self.mean, self._period, self._url = mean, 1 / per_second, url
        self._chance, self._evaluator = random.Random(seed), evaluator()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(20)

    def _run(self) -> None:
        number = 0
        with database.connect(self._url, name="proof") as connection:
            began = time.monotonic()
            while not self._stop.wait(max(0.0, began + number * self._period - time.monotonic())):
                number += 1
                self._write(connection, answer(self._chance, self.mean, number))

    def _write(self, connection: psycopg.Connection[TupleRow], said: Interaction) -> None:
        found = pipeline.evaluate_batch([said], self._evaluator)[0]
        new = ledger.NewAnswer(
            tenant="default",
            trace_id=said.trace_id,
            span_id=said.span_id,
            app=said.app,
            answered_at=said.answered_at,
            body=msgspec.json.encode(said),
        )
        inserted = ledger.insert(connection, [new])
        work = ledger.claim(connection, [row.evaluation_id for row in inserted])[0]
        results.finalise(connection, [results.Finished(work=work, evaluation=found, labels=results.Labels.of(said))])
        connection.commit()


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def configure(home: Path, pagerduty: str, ports: dict[str, int]) -> None:
    """Copy the shipped configuration; replace addresses and the key's path."""
    prometheus: Any = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    prometheus["rule_files"] = [str(ROOT / "deploy/prometheus/rules/*.yml")]
    prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [
        f"127.0.0.1:{ports['alertmanager']}"
    ]
    prometheus["scrape_configs"] = prometheus["scrape_configs"][:1]
    prometheus["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{ports['exporter']}"]
    (home / "prometheus.yml").write_text(yaml.safe_dump(prometheus))
    key = home / "pagerduty_routing_key"
    key.write_text("0123456789abcdef0123456789abcdef")
    alertmanager: Any = yaml.safe_load((ROOT / "deploy/alertmanager/alertmanager.yml").read_text())
    settings = alertmanager["receivers"][1]["pagerduty_configs"][0]
    settings |= {"routing_key_file": str(key), "url": pagerduty}
    (home / "alertmanager.yml").write_text(yaml.safe_dump(alertmanager))


TEMPLATES: Final = Path("/usr/share/prometheus/alertmanager/default.tmpl")
_MOUNT: Final = (
    'mount -t overlay overlay -o "lowerdir=$0:/usr/share" /usr/share 2> /dev/null'
    ' || mount --rbind "$0" /usr/share; exec "$@"'
)


def beside_templates(binaries: Path, command: list[str]) -> list[str]:
    """Debian's Alertmanager reads its templates from /usr/share only.

    Where the package is unpacked and not installed, it gets a mount namespace of its own in which they are there.
    """
    if TEMPLATES.exists():
        return command
    return ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNT, str(binaries.parent / "share"), *command]


def commands(home: Path, binaries: Path, ports: dict[str, int]) -> dict[str, list[str]]:
    """Command lines of the chain."""
    return {
        "exporter": [sys.executable, "-m", "aftercheck_worker.cli", "exporter"],
        "prometheus": [
            str(binaries / "prometheus"),
            f"--config.file={home / 'prometheus.yml'}",
            f"--storage.tsdb.path={home / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
        ],
        "alertmanager": beside_templates(
            binaries,
            [
                str(binaries / "prometheus-alertmanager"),
                f"--config.file={home / 'alertmanager.yml'}",
                f"--storage.path={home / 'alerts'}",
                f"--web.listen-address=127.0.0.1:{ports['alertmanager']}",
                "--cluster.listen-address=",
            ],
        ),
    }


@contextlib.contextmanager
def chain(
    home: Path, binaries: Path, environ: dict[str, str], ports: dict[str, int]
) -> Generator[list[psutil.Process]]:
    """Run exporter, Prometheus and Alertmanager."""
    with contextlib.ExitStack() as stack:
        running: list[subprocess.Popen[bytes]] = []
        for name, command in commands(home, binaries, ports).items():
            log = stack.enter_context((home / f"{name}.log").open("wb"))
            running.append(subprocess.Popen(command, env=environ, stdout=log, stderr=log, start_new_session=True))
        try:
            for name, path in (("exporter", "/readyz"), ("prometheus", "/-/ready"), ("alertmanager", "/-/ready")):
                _await(f"http://127.0.0.1:{ports[name]}{path}")
            yield [psutil.Process(process.pid) for process in running]
        finally:
            for process in reversed(running):
                process.terminate()
            for process in running:
                process.wait(20)


def _await(url: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{url} does not answer")
        time.sleep(0.2)


def prove(binaries: Path, say: Callable[[str], None], *, warm_s: float = 300, seed: int = 1) -> Timing:
    """Run the proof: `warm_s` seconds of healthy answers, a drop .92 -> .5 at 1/s, recovery.

    Raises:
        TimeoutError: no trigger within 5 minutes of the drop, or no resolve within 15 of the recovery.
    """
    ports = {name: free_port() for name in ("exporter", "prometheus", "alertmanager")}
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded.start(Path(folder) / "data") as services,
        PagerDuty() as pager,
    ):
        if services.database_url is None or services.redis_url is None:
            raise RuntimeError("the embedded services did not start")
        home = Path(folder)
        migrate.upgrade(services.database_url)
        configure(home, pager.url, ports)
        environ = {
            **os.environ,
            "DATABASE_URL": services.database_url,
            "REDIS_URL": services.redis_url,
            "AFTERCHECK_HOME": str(home / "home"),
            "AFTERCHECK_EXPORTER_PORT": str(ports["exporter"]),
        }
        with chain(home, binaries, environ, ports) as processes:
            rss = sum(process.memory_info().rss for process in processes) / 2**20
            say(f"exporter, Prometheus and Alertmanager idle at {rss:.0f} MiB")
            with Traffic(services.database_url, per_second=1, mean=0.92, seed=seed) as traffic:
                return _timed(traffic, pager, say, warm_s, rss)


def _timed(traffic: Traffic, pager: PagerDuty, say: Callable[[str], None], warm_s: float, rss: float) -> Timing:
    say(f"{warm_s:.0f} s of answers with mean faithfulness .92, one a second")
    time.sleep(warm_s)  # a window of healthy traffic is what is measured against
    if pager.events:
        raise RuntimeError(f"healthy traffic paged: {pager.events[0].body}")
    traffic.mean, dropped = 0.5, time.monotonic()
    say("answers now start to hallucinate: mean .50")
    trigger = pager.wait("trigger", 300)
    say(f"trigger after {trigger.at - dropped:.0f} s: {trigger.body['payload']['summary']}")
    traffic.mean, mended = 0.92, time.monotonic()
    say("the answers are good again: mean .92")
    resolve = _resolved(pager, trigger, say)
    say(f"resolve after {resolve.at - mended:.0f} s, dedup_key {resolve.dedup_key[:12]}...")
    return Timing(
        trigger_s=trigger.at - dropped,
        resolve_s=resolve.at - mended,
        rss_mb=rss,
        events=tuple(f"{event.action} {event.body.get('payload', {}).get('class', '')}" for event in pager.events),
        dedup_keys=tuple(sorted({event.dedup_key for event in (trigger, resolve)})),
        refused=tuple(pager.refused),
    )


def _resolved(pager: PagerDuty, trigger: Event, say: Callable[[str], None]) -> Event:
    """Wait for the resolve of the same incident."""
    deadline = time.monotonic() + 900
    seen = 0
    while time.monotonic() < deadline:
        resolve = pager.wait("resolve", deadline - time.monotonic(), since=seen)
        seen = pager.events.index(resolve) + 1
        if resolve.dedup_key == trigger.dedup_key:
            return resolve
        say(f"another incident ended: {resolve.dedup_key[:12]}...")
    raise TimeoutError("the incident was not resolved within 15 minutes")
