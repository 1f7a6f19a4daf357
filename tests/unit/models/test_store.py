"""Models come from where they were asked for, whole or not at all, and only as the lock has them."""

from __future__ import annotations

import functools
import http.server
import pickle
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from aftercheck_worker import evaluators, settings
from aftercheck_worker.cli import application
from aftercheck_worker.errors import DependencyUnavailable, ModelRefused
from aftercheck_worker.models import lock, registry
from aftercheck_worker.models.store import Store

HEADER = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
SAFE = len(HEADER).to_bytes(8, "little") + HEADER + b"\0\0\0\0"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(SAFE)
    (folder / "config.json").write_text('{"model_type": "bert"}')
    return folder


@pytest.fixture
def store(tmp_path: Path, release: Path) -> Store:
    entry = lock.pin(release, name="tiny", revision="1", kind="encoder")
    return Store(tmp_path / "models", lock.Lock(models=[entry]))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
        pass


@pytest.fixture
def url(release: Path) -> Iterator[str]:
    handler = functools.partial(Quiet, directory=str(release))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.mark.req("S29")
def test_from_a_folder(store: Store, release: Path) -> None:
    place = store.fetch("tiny", str(release))
    assert (place / "model.safetensors").read_bytes() == SAFE
    assert store.folder("tiny") == place


@pytest.mark.req("S29")
def test_from_a_server(store: Store, url: str) -> None:
    told: list[tuple[str, int]] = []
    store.fetch("tiny", url, told=lambda name, size: told.append((name, size)))
    assert ("model.safetensors", len(SAFE)) in told
    assert store.state(store.lock.find("tiny")) == "installed"


def test_a_server_without_the_file(store: Store, url: str, release: Path) -> None:
    (release / "config.json").unlink()
    with pytest.raises(DependencyUnavailable, match="Cannot fetch config"):
        store.fetch("tiny", url)
    assert list(store.home.iterdir()) == []


@pytest.mark.parametrize("content", [SAFE[:-1] + b"\1", SAFE + b"\0", SAFE[:-1]])
def test_altered_bytes_are_refused_and_leave_nothing(store: Store, url: str, release: Path, content: bytes) -> None:
    (release / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelRefused, match="is not the released file"):
        store.fetch("tiny", url)
    assert list(store.home.iterdir()) == []


def test_an_old_installation_survives_a_failed_fetch(store: Store, release: Path) -> None:
    store.fetch("tiny", str(release))
    (release / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ModelRefused):
        store.fetch("tiny", str(release))
    store.folder("tiny")


def test_nothing_is_fetched_by_itself(store: Store) -> None:
    with pytest.raises(ModelRefused, match="not installed"):
        store.folder("tiny")
    assert not store.home.exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", b"{}", "not the released file"),
        ("extra.json", b"{}", "not in models.lock"),
        ("run.py", b"print()", "may carry code"),
        ("config.json", b'{"auto_map": {"AutoModel": "m.M"}}', "remote code"),
        ("tokenizer_config.json", b'{"auto_map": {"AutoTokenizer": "m.M"}}', "remote code"),
        ("model.safetensors", pickle.dumps([1]), "is a pickle"),
        ("model.safetensors", b"PK\x03\x04torch.save", "is a pickle"),
        ("model.safetensors", b"\x00" * 32, "not in safetensors"),
    ],
)
def test_an_installed_model_that_changed_is_refused(
    store: Store, release: Path, name: str, content: bytes, words: str
) -> None:
    place = store.fetch("tiny", str(release))
    (place / name).write_bytes(content)
    with pytest.raises(ModelRefused, match=words):
        store.folder("tiny")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "modeling.py", "weights.pt", "model.pkl"])
def test_what_may_carry_code_cannot_be_pinned(release: Path, name: str) -> None:
    (release / name).write_bytes(b"x")
    with pytest.raises(ModelRefused, match="may carry code"):
        lock.pin(release, name="tiny", revision="1", kind="pair")


@pytest.mark.parametrize("name", ["../evil", "a/b", ".hidden", ""])
def test_a_lock_names_no_folders(tmp_path: Path, name: str) -> None:
    entry = lock.LockedModel(name=name, revision="1", kind="pair", format="onnx", files={})
    path = tmp_path / "own.lock"
    path.write_bytes(msgspec.json.encode(lock.Lock(models=[entry])))
    with pytest.raises(ModelRefused, match="names"):
        lock.read(path)


def test_own_pins_join_the_shipped_ones(tmp_path: Path, release: Path) -> None:
    path = tmp_path / "own.lock"
    lock.write(path, lock.pin(release, name="tiny", revision="1", kind="encoder"))
    lock.write(path, lock.pin(release, name="tiny", revision="2", kind="encoder"))
    found = lock.read(path)
    assert found.find("tiny").revision == "2"
    assert len(found.models) == len(lock.read().models) + 1
    with pytest.raises(ModelRefused, match="not in models"):
        lock.read().find("tiny")


@pytest.mark.req("S29", "F22")
def test_the_shipped_weights_are_the_locked_ones() -> None:
    known = lock.read()
    for folder in registry.SHIPPED.iterdir():
        Store(Path("nowhere"), known).verify(known.find(folder.name))


@pytest.mark.req("S29", "U10")
def test_the_commands(
    tmp_path: Path, release: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AFTERCHECK_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("AFTERCHECK_MODELS_LOCK", str(tmp_path / "own.lock"))
    settings.current.cache_clear()
    pinning = [
        "models",
        "pin",
        str(release),
        "--name",
        "tiny",
        "--revision",
        "1",
        "--into",
        str(tmp_path / "own.lock"),
    ]
    assert application.run(pinning) == 0
    assert application.run(["models", "fetch", "tiny", "--from", str(release)]) == 0
    assert application.run(["models", "verify"]) == 0
    capsys.readouterr()
    assert application.run(["models", "list", "--json"]) == 0
    states = {row["name"]: row["state"] for row in msgspec.json.decode(capsys.readouterr().out)}
    assert states["tiny"] == "installed"
    assert states[evaluators.ENGLISH] == "shipped"
    (tmp_path / "models" / "tiny" / "model.safetensors").write_bytes(b"other bytes")
    assert application.run(["models", "verify"]) == 78
    assert len(capsys.readouterr().err.strip().splitlines()) == 2  # the shipped one, and one error line
    shutil.rmtree(tmp_path / "models")
    assert application.run(["models", "verify", "tiny"]) == 78
    assert application.run(["models", "fetch", "unknown", "--from", str(release)]) == 78
    settings.current.cache_clear()
