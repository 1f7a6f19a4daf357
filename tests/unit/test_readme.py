"""README says what the requirements want, its commands exist, and its numbers are the measured ones."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

from aftercheck_worker.cli import application

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.req("R56")
def test_a_benchmark_is_no_certificate() -> None:
    text = " ".join(README.split())

    assert "A public benchmark is a baseline, not a release certificate, and no threshold is universal" in text


@pytest.mark.req("R1")
def test_the_example_is_one_call() -> None:
    assert "pip install 'aftercheck[traceloop]'" in README
    assert 'import aftercheck\n\naftercheck.init("finance-rag")\n' in README


def test_the_numbers_are_those_of_the_last_benchmark() -> None:
    driver = importlib.import_module("benchmarks.__main__")
    results = json.loads((ROOT / "benchmarks" / "results" / "latest.json").read_text())

    assert driver.readme(README, results) == README, "run: make bench"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_in_the_pages_exists(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = application.build()
    known = {info.name or (info.callback.__name__ if info.callback else "") for info in app.registered_commands}
    known |= {str(group.name) for group in app.registered_groups}
    code = re.findall(r"`([^`\n]+)`|^((?:\.venv/bin/)?aftercheck .+)$", page.read_text(), re.M)
    words = [line.split() for pair in code for line in pair if re.match(r"(\.venv/bin/)?aftercheck [a-z]", line)]

    assert {line[1] for line in words} <= known


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_and_make_targets_exist(page: Path) -> None:
    text = page.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))

    for link in re.findall(r"\]\(([^)#\s]+)\)", text):
        assert link.startswith("http") or (page.parent / link).exists(), link
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.M)) <= targets
