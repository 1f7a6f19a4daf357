"""Writes docs/reference from the code: `python docs/generate.py`. A test fails when a page is not fresh."""

from __future__ import annotations

import contextlib
import io
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
    return {"cli.md": cli(), "metrics.md": metric_table(), "settings.md": setting_table()}


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


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
