"""The frame holds: import rules, what the wheel carries, what a base install costs, nothing of a machine."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
HEAVY = (
    "celery",
    "sqlalchemy",
    "torch",
    "onnxruntime",
    "transformers",
    "numpy",
    "pydantic",
    "psycopg",
    "typer",
    "rich",
)
FOLDERS = (
    "producer",
    "schemas",
    "worker",
    "migrations",
    "deploy",
    "grafana",
    "tests",
    "benchmarks",
    "docs",
    "training",
)
TEXT = (".py", ".md", ".toml", ".yml", ".yaml", ".json", ".jsonl", ".ini", ".mako", ".txt", ".sh", "")
MACHINE = re.compile(r"(?<![\w./<])/(?:work|root|home|Users|mnt|opt)/[a-z]|\bfile:///(?!\w*path)")


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=110
    )


@pytest.mark.req("R31")
def test_the_import_rules_hold() -> None:
    done = python("import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(cache_dir=None))")

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "6 kept, 0 broken" in done.stdout


@pytest.mark.parametrize("package", ["aftercheck", "aftercheck_schemas"])
def test_importing_the_sdk_loads_no_heavy_library(package: str) -> None:
    done = python(f"import sys, {package}; print(*sorted(name.partition('.')[0] for name in sys.modules))")

    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & {*HEAVY, "redis", "traceloop"}


def test_a_base_install_is_at_most_ten_distributions() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting, found = [Requirement(text) for text in project["dependencies"]], {"aftercheck"}
    while waiting:
        needed = waiting.pop()
        name = needed.name.lower().replace("_", "-")
        if name in found or (needed.marker and not needed.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += [Requirement(text) for text in metadata.requires(name) or ()]

    assert len(found) <= 10, sorted(found)
    assert not found & set(HEAVY)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_carries_all_packages_migrations_and_data(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    for needed in (
        "aftercheck/__init__.py",
        "aftercheck/py.typed",
        "aftercheck_schemas/py.typed",
        "aftercheck_worker/py.typed",
        "aftercheck_worker/migrations/env.py",
        "aftercheck_worker/demo/rows.jsonl",
        "aftercheck_worker/demo/NOTICE",
        "aftercheck_worker/programs/replay.py",
        "aftercheck_worker/text/lexicons/en.toml",
    ):
        assert needed in names, needed
    assert any(name.startswith("aftercheck_worker/migrations/versions/") for name in names)
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"aftercheck", "aftercheck_schemas", "aftercheck_worker"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_the_base_wheel_works_alone(wheel: Path, tmp_path: Path) -> None:
    """Needs the package registry."""
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=110)
    pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", str(wheel)], check=True, timeout=300)
    listed = subprocess.run([*pip, "list", "--format=freeze"], capture_output=True, text=True, check=True).stdout
    command = subprocess.run([str(home / "bin" / "aftercheck")], capture_output=True, text=True, timeout=60)

    names = {line.partition("==")[0] for line in listed.splitlines()} - {"pip", "setuptools"}
    assert len(names) <= 10, names
    assert command.returncode == 78
    assert "pip install 'aftercheck[worker]'" in command.stderr


def test_nothing_of_a_machine_is_in_the_repository() -> None:
    found: list[str] = []
    for path in [*ROOT.glob("*"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*"))]:
        if not path.is_file() or path.suffix not in TEXT or path == Path(__file__) or "__pycache__" in path.parts:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if MACHINE.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}")

    assert not found, "\n".join(found[:20])


@pytest.mark.req("R56")
def test_ci_runs_exactly_the_readmes_test_command() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line and line[0] not in "#"]

    assert commands[-1] == "make test"
    assert "\nmake test\n" in (ROOT / "README.md").read_text()
