"""Runs `promtool test rules` over series written in Python."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy/prometheus/rules/aftercheck.yml"
QUALITY = 'app="shop",environment="",evaluator="engine",quality="standard",origin="production"'


@functools.cache
def binaries() -> Path:
    """Folder with promtool and friends; skips where neither PATH nor Debian has them."""
    found = subprocess.run([ROOT / "deploy/prometheus/binaries.sh"], capture_output=True, text=True, timeout=110)
    if found.returncode == 69:
        pytest.skip(found.stderr.strip())
    assert found.returncode == 0, found.stderr
    return Path(found.stdout.strip())


_GOT = re.compile(r'expr: "(?P<expr>.*?)", time: (?P<at>\w+),\s+exp: nil\s+got: (?P<got>.*)')


def values(
    folder: Path, series: Mapping[str, str], asked: Sequence[tuple[str, str]], interval: str
) -> dict[tuple[str, str], list[float]]:
    """Evaluate expressions after the rules have run.

    promtool only tells what differs from the expected: nothing is expected, so it tells everything.

    Args:
        folder: for the test file.
        series: selector to values, in promtool's notation.
        asked: (time, expression); times as promtool prints them, such as 6m30s.
        interval: of the values. With "1m" the rules too are evaluated every minute: hours of them in a second.
    """
    test = {
        "interval": interval,
        "input_series": [{"series": key, "values": value} for key, value in series.items()],
        "promql_expr_test": [{"expr": expr, "eval_time": at} for at, expr in asked],
    }
    path = folder / "test.yml"
    evaluated = "1m" if interval == "1m" else "5s"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": evaluated, "tests": [test]}))
    command = [str(binaries() / "promtool"), "test", "rules", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    output = done.stdout + done.stderr
    assert "err:" not in output, output
    found: dict[tuple[str, str], list[float]] = {}
    for match in _GOT.finditer(output):
        expr = match["expr"].replace('\\"', '"')
        found[match["at"], expr] = [float(each.rsplit(" ", 1)[1]) for each in match["got"].split(", {")]
    return found


def firing(name: str) -> str:
    """Expression that is there while the alert fires."""
    return f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'


def check(
    folder: Path, series: Mapping[str, str], expected: Sequence[tuple[str, str, bool]], interval: str = "5s"
) -> None:
    """Assert which alerts fire when: (time, alert, whether it fires then)."""
    found = values(folder, series, [(at, firing(name)) for at, name, _ in expected], interval)
    fired = {(at, name): (at, firing(name)) in found for at, name, _ in expected}
    assert fired == {(at, name): fires for at, name, fires in expected}
