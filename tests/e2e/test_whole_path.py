"""The whole path with real processes: the demo, and push -> explain -> stats -> metrics under `up`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

CLI = (sys.executable, "-m", "aftercheck_worker.cli")
ROWS = (
    {
        "query": "Capital of France?",
        "context": "Paris is the capital of France.",
        "answer": "Paris is the capital of France.",
    },
    {
        "query": "And of Peru?",
        "context": ["Lima is the capital of Peru."],
        "response": "Cusco rules nine provinces abroad.",
    },
    {"query": "Hello?", "answer": "Hello!"},
)


def environ(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "AFTERCHECK_HOME": str(home), "AFTERCHECK_LOG_FORMAT": "text", **more}


def command(env: dict[str, str], *words: str) -> Any:
    done = subprocess.run([*CLI, *words, "--json"], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stderr[-3000:]}"
    return json.loads(done.stdout)


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def until(what: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def family(process: subprocess.Popen[Any]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def all_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not alive, [(process.pid, process.cmdline()) for process in alive]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def first_run(home: Path) -> Any:
    """What the first demo in this home shows."""
    return command(environ(home), "demo")


@pytest.mark.req("R1", "R3", "R4", "U01", "U02")
def test_the_demo_shows_a_verdict_for_every_answer(first_run: Any) -> None:
    shown = first_run

    assert 0 < shown["first_verdict_s"] <= shown["seconds"]
    assert len(shown["answers"]) == 24
    assert {line["outcome"] for line in shown["answers"]} <= {"grounded", "ungrounded", "no_claims", "abstained"}
    assert sum(len(line["claims"]) for line in shown["answers"]) >= 24
    funnel = shown["funnel"]
    assert (funnel["sampled"], funnel["unsampled"], funnel["answers"]) == (24, 0, 24)
    assert sum(funnel["states"].values()) == 24
    assert not funnel["dead_letters"]
    decided = sum(line["outcome"] in ("grounded", "ungrounded") for line in shown["answers"])
    gauges = {name.partition("{")[0]: value for name, value in shown["gauges"].items()}
    assert gauges["aftercheck_window_evaluations"] == decided
    faithful = [line["faithfulness"] for line in shown["answers"] if line["outcome"] in ("grounded", "ungrounded")]
    assert gauges["aftercheck_faithfulness_ratio"] == pytest.approx(sum(faithful) / decided)


@pytest.mark.req("I8", "U12")
@pytest.mark.usefixtures("first_run")
def test_a_second_run_keeps_the_data_and_ctrl_c_leaves_nothing(home: Path) -> None:
    process = subprocess.Popen(
        [*CLI, "demo", "--stay", "--json"],
        env=environ(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        head = ""
        while not head.endswith("\n}\n"):
            line = process.stdout.readline()
            assert line, process.stderr.read()[-3000:]
            head += line
        shown = json.loads(head)
        running = family(process)
        assert len(running) >= 4
        assert shown["funnel"]["sampled"] == 24  # of this run
        both = 'aftercheck_traces_sampled_total{app="demo-rag",environment="",origin="production"} 48.0'
        until(lambda: both in fetch(shown["metrics"]), 30)
        guilty = next(line["trace_id"] for line in shown["answers"] if line["outcome"] == "ungrounded")
        until(lambda: answers(f"{shown['page']}/ui/traces/{guilty}"))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    all_gone(running)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[subprocess.Popen[str], dict[str, str], str]]:
    port = free_port()
    env = environ(
        tmp_path_factory.mktemp("up"),
        AFTERCHECK_EXPORTER_PORT=port,
        AFTERCHECK_API_PORT=free_port(),
        AFTERCHECK_EXPORTER_REFRESH_SECONDS="0.5",
        AFTERCHECK_QUIET_SECONDS="0.5",
    )
    process = subprocess.Popen([*CLI, "up"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    yield process, env, f"http://127.0.0.1:{port}"
    if process.poll() is None:
        process.terminate()
        process.wait(60)


Up = tuple[subprocess.Popen[str], dict[str, str], str]


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as response:
        return bytes(response.read()).decode()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


@pytest.mark.req("R5", "R53", "U32")
def test_push_travels_to_explain_stats_and_metrics(up: Up, tmp_path: Path) -> None:
    process, env, base = up
    until(lambda: answers(base + "/readyz"))
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))

    sent = command(env, "push", str(file), "--app", "replayed")
    assert (sent["rows"], sent["left"], sent["dropped"]) == (3, 0, {})
    until(lambda: command(env, "stats")["funnel"]["states"] == {"scored": 2, "not_assessable": 1}, 60)
    until(lambda: command(env, "stats")["funnel"]["sampled"] == 3, 30)
    assert process.poll() is None

    stories = [command(env, "explain", trace_id)["answers"] for trace_id in sent["trace_ids"]]
    assert [len(story) for story in stories] == [1, 1, 1]
    first, second, third = (story[0] for story in stories)
    assert first["origin"] == second["origin"] == "replay"
    assert first["evaluations"][0]["outcome"] == "grounded"
    assert second["evaluations"][0]["outcome"] == "ungrounded"
    passage = second["interaction"]["passages"][0]["text"]
    for evidence in second["evaluations"][0]["claims"][0]["evidence"]:
        assert passage[evidence["start"] : evidence["end"]] == evidence["text"]
    assert (third["state"], third["reason"]) == ("not_assessable", "no_evidence_expected")
    assert third["why"]

    until(lambda: 'aftercheck_answers_raw_total{app="replayed"' in fetch(base + "/metrics"), 30)
    text = fetch(base + "/metrics")
    assert "aftercheck_faithfulness_ratio{" not in text


@pytest.mark.req("R4", "U14")
def test_the_other_commands_work_beside_a_running_fleet(up: Up) -> None:
    _, env, base = up
    until(lambda: answers(base + "/readyz"))

    assert command(env, "sampling", "set", "replayed", "0.5")["version"] == 1
    assert command(env, "sampling", "list")["apps"]["replayed"]["rate"] == 0.5
    assert command(env, "dlq", "list") == []
    found = {line["check"]: line["status"] for line in command(env, "doctor")}
    until(lambda: answers(f"http://127.0.0.1:{env['AFTERCHECK_API_PORT']}/ui/traces"))
    assert {found[name] for name in ("redis", "postgres", "schema", "eviction", "exporter")} == {"ok"}
    assert found["evaluator"] in ("ok", "warn")


@pytest.mark.req("P10", "F02")
def test_sigterm_stops_everything(up: Up) -> None:
    process, _, base = up
    until(lambda: answers(base + "/readyz"))
    running = family(process)

    process.terminate()

    assert process.wait(60) == 0
    all_gone(running)
