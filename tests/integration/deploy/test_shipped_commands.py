"""What the container files start, started here: Valkey with compose's flags, and the monitoring's configuration."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as Refused
from redis.retry import Retry

from aftercheck_worker.embedded import binaries
from tests.integration.oncall import promtool

pytestmark = pytest.mark.integration

DEPLOY = Path(__file__).parents[3] / "deploy"
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yml").read_text())


def test_valkey_starts_with_the_flags_of_compose_and_keeps_queues(tmp_path: Path) -> None:
    program, *flags = COMPOSE["services"]["redis"]["command"]
    found = binaries.find().valkey
    assert found.name == program
    socket = tmp_path / "valkey.sock"
    command = [str(found), *flags, "--port", "0", "--unixsocket", str(socket), "--dir", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        retry = Retry(ExponentialBackoff(cap=0.2, base=0.01), 50)
        missing: list[type[Exception]] = [FileNotFoundError, Refused]
        client = redis.Redis(unix_socket_path=str(socket), retry=retry, retry_on_error=missing)
        told = client.config_get("maxmemory*", "append*", "save")
        client.close()
    finally:
        process.terminate()
        process.wait(20)
    assert isinstance(told, dict)
    assert (told["maxmemory-policy"], int(told["maxmemory"] or 0)) == ("noeviction", 2 * 2**30)
    assert (told["appendonly"], told["appendfsync"], told["save"]) == ("yes", "everysec", "")


def test_the_wheel_builds_from_what_the_image_copies(tmp_path: Path) -> None:
    """`pip install .` inside the image sees these files alone."""
    root = DEPLOY.parent
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    for name in copied:
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, tmp_path / "src" / name)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=tmp_path / "src", capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(wheel) as found:
        names = found.namelist()
    for part in ("aftercheck/command.py", "aftercheck_schemas/", "aftercheck_worker/migrations/versions/"):
        assert any(name.startswith(part) for name in names), part
    assert "aftercheck_worker/runbooks/FaithfulnessLow.md" in names


def test_prometheus_and_alertmanager_accept_what_is_mounted(tmp_path: Path) -> None:
    folder = promtool.binaries()
    for name in ("prometheus", "alertmanager"):
        shutil.copytree(DEPLOY / name, tmp_path / name)
    checks = (
        [str(folder / "promtool"), "check", "config", str(tmp_path / "prometheus/prometheus.yml")],
        [str(folder / "promtool"), "check", "rules", str(tmp_path / "prometheus/disabled/literal.yml")],
        [str(folder / "amtool"), "check-config", str(tmp_path / "alertmanager/alertmanager.yml")],
    )
    for command in checks:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    told = subprocess.run(checks[0], capture_output=True, text=True, timeout=60).stdout
    assert "1 rule files found" in told
