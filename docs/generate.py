"""Writes docs/reference from the code: `python docs/generate.py`. A test fails when a page is not fresh."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path

from aftercheck_worker.cli import application
from aftercheck_worker.cli.config import variable
from aftercheck_worker.exporter import metrics
from aftercheck_worker.settings import Settings

FOLDER = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py; do not edit. -->\n\n"


def pages() -> dict[str, str]:
    """File name -> text."""
    return {
        "cli.md": cli(),
        "false-pages.md": false_pages(),
        "metrics.md": metric_table(),
        "settings.md": setting_table(),
    }


def cli() -> str:
    """Every command's help, and the exit codes."""
    text = NOTE + (
        "# Command line\n\n"
        "Data goes to stdout, words for humans to stderr; `--json` prints data as JSON. `--debug` may stand\n"
        "anywhere and shows tracebacks. `NO_COLOR` is honoured.\n\n"
    )
    text += "| exit code | meaning |\n|---|---|\n"
    for code, meaning in EXIT_CODES.items():
        text += f"| {code} | {meaning} |\n"
    for path in commands():
        text += f"\n## aftercheck {' '.join(path)}\n\n```text\n{help_of(path)}\n```\n"
    return text


EXIT_CODES = {
    0: "done",
    1: "a gate failed, or nothing is known of the trace",
    2: "wrong usage",
    3: "inconclusive",
    64: "the command asks for something impossible",
    65: "a file that you named cannot be read",
    69: "Redis, Postgres or a judge does not answer",
    70: "a bug of ours, or a process that ended",
    78: "a setting is wrong or missing",
    130: "Ctrl-C",
}


def commands() -> list[list[str]]:
    """Paths of all commands, sorted."""
    app = application.build()
    found = [[_name(info.name, info.callback)] for info in app.registered_commands]
    for group in app.registered_groups:
        inner = group.typer_instance
        inside = inner.registered_commands if inner is not None else []
        found += [[str(group.name), _name(info.name, info.callback)] for info in inside]
    return sorted(found)


def _name(name: str | None, callback: object) -> str:
    return name or str(getattr(callback, "__name__", "")).replace("_", "-")


def help_of(path: list[str]) -> str:
    """What `aftercheck PATH --help` prints in 80 columns."""
    told = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.redirect_stdout(told):
            application.run([*path, "--help"])
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n".join(line.rstrip() for line in told.getvalue().strip().splitlines())


def metric_table() -> str:
    """Every metric of the exporter."""
    text = NOTE + (
        "# Metrics\n\n"
        "`aftercheck exporter` serves these on `/metrics`. They are read from Postgres and Redis every\n"
        "`AFTERCHECK_EXPORTER_REFRESH_SECONDS` and served from memory: a scrape touches no store.\n"
        "No data = no series, never 0. While a store does not answer, its series are absent.\n\n"
        '- `quality` is `smoke` for the word-overlap baseline: alerts select `quality="standard"`.\n'
        "- `origin` is `production`, `forced`, `check`, `replay` or `golden`: rates and alerts select\n"
        '  `origin="production"`. The 5-minute gauges hold production only, late answers left out.\n'
        "- Label values beyond `AFTERCHECK_LABEL_VALUES` become `other`; ids are in no label.\n"
        "- Fleet mean over any window: `sum(rate(aftercheck_faithfulness_sum[5m])) /"
        " sum(rate(aftercheck_faithfulness_count[5m]))`.\n"
        "- Replicas of the exporter show the same numbers: aggregate them with `max by`.\n\n"
        "| metric | kind | labels | meaning |\n|---|---|---|---|\n"
    )
    for metric in sorted(metrics.ALL, key=lambda one: one.full_name):
        names = f"`{metric.full_name}`"
        if metric.kind == "summary":
            names = f"`{metric.full_name}_sum`, `{metric.full_name}_count`"
        labels = ", ".join(metric.labels)
        text += f"| {names} | {metric.kind} | {labels} | {metric.help} |\n"
    return text


def setting_table() -> str:
    """Every setting of the worker side."""
    text = NOTE + (
        "# Settings\n\n"
        "Read from the environment. `DATABASE_URL_FILE` and `REDIS_URL_FILE` name a file that holds the value.\n"
        "An unknown `AFTERCHECK_` name is an error. `aftercheck config show --sources` says what is in force.\n"
        "Durations are seconds, sizes bytes, rates 0 to 1.\n\n"
        "| variable | default | meaning |\n|---|---|---|\n"
    )
    for field, info in Settings.model_fields.items():
        default = "" if info.default is None else f"`{info.default}`"
        text += f"| `{variable(field)}` | {default} | {(info.description or '').replace('|', '/')} |\n"
    return text


RESULTS = Path(__file__).parents[1] / "benchmarks/results/latest.json"
HEALTHY = "alert.false_pages_30d."
TO_FIRE = "alert.fire_s."


def false_pages() -> str:
    """How often FaithfulnessLow pages a healthy service, and how soon a sick one: `make false-pages`."""
    results: dict[str, float] = {
        key: value for key, value in json.loads(RESULTS.read_text()).items() if not isinstance(value, str)
    }
    text = NOTE + (
        "# False pages and time to fire\n\n"
        "Measured by `make false-pages`: simulated Poisson traffic through the arithmetic of FaithfulnessLow, the\n"
        "windows sliding from scrape to scrape, `increase()` with its extrapolation, hold and keep included. A test\n"
        "holds the simulation to the real rules: in promtool the same scrapes give the same values, and the page at\n"
        "the same moment. The seeds are fixed: the numbers do not depend on the machine.\n\n"
        "The rule: mean + 3 standard errors below 0.8, over 5 minutes or over 30, at least 20 independent answers\n"
        "(their number over the design effect), for 30 s.\n\n"
        "## Pages of a healthy service in 30 days\n\n"
        "Mean over 20 simulations of 30 days each. Columns: evaluated answers per minute. Below about 0.7 a minute\n"
        "the 30-minute window seldom holds 20 answers: the rule is then mostly silent, for a sick service too.\n\n"
    )
    if not _traffic(results, HEALTHY):
        return text + "Not measured in this checkout.\n"
    text += _page_table(results, HEALTHY)
    text += (
        "\nAnswers of one session are alike. Mean .85, sd .30, five answers in a row with the same value: without\n"
        "the exported `aftercheck_faithfulness_design_effect`, and with it, as shipped. Its true value (5) is used\n"
        "here; the exporter estimates it from the sessions of the last 30 minutes.\n\n"
    )
    parts = {name: f"alert.false_pages_sessions_{name}_30d." for name in ("ignored", "counted")}
    names = _traffic(results, parts["ignored"])
    text += f"| design effect | {' | '.join(names)} |\n|---|{'---|' * len(names)}\n"
    for name, start in parts.items():
        cells = (f"{results[f'{start}0.85_0.30_{traffic}']:.2f}" for traffic in names)
        text += f"| {name} | {' | '.join(cells)} |\n"
    text += (
        "\n## Seconds from a drop to the alert\n\n"
        "Mean faithfulness .92 (sd .20), from one moment on .50 (sd .35); 400 trials. Alertmanager's group wait\n"
        "adds 5 s, and an answer needs seconds from the app to the exporter. `make prove-alert` times it all.\n\n"
        "| answers per minute | median | 95th percentile |\n|---|---|---|\n"
    )
    for traffic in _traffic(results, TO_FIRE):
        median, late = results[TO_FIRE + traffic], results[f"alert.fire_p95_s.{traffic}"]
        text += f"| {traffic} | {median:.0f} | {late:.0f} |\n"
    return text


def _traffic(results: dict[str, float], start: str) -> list[str]:
    """Traffic of the keys that begin so, in order."""
    found = (key.removeprefix(start) for key in results if key.startswith(start))
    return sorted({name.rpartition("_")[2] for name in found}, key=float)


def _page_table(results: dict[str, float], start: str) -> str:
    names = _traffic(results, start)
    kinds = sorted({key[len(start) :].rpartition("_")[0] for key in results if key.startswith(start)}, reverse=True)
    text = f"| mean | sd | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}\n"
    for kind in kinds:
        mean, _, spread = kind.partition("_")
        cells = (f"{results[f'{start}{kind}_{traffic}']:.2f}" for traffic in names)
        text += f"| {mean} | {spread} | {' | '.join(cells)} |\n"
    return text


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
