"""From the judge's URL to its back end."""

from __future__ import annotations

from pathlib import Path

import pytest

from aftercheck_worker import settings
from aftercheck_worker.errors import ConfigurationError, ModelRefused
from aftercheck_worker.judge.back_end import Probing, build
from aftercheck_worker.models import lock
from aftercheck_worker.models.anthropic_messages import AnthropicMessages
from aftercheck_worker.models.openai_compatible import OpenAICompatible


def named(url: str, **more: str) -> settings.Settings:
    return settings.load({"AFTERCHECK_JUDGE_URL": url, **more})


def test_no_url_is_no_judge() -> None:
    assert build(settings.load({})) is None


@pytest.mark.parametrize(
    ("url", "kind", "base"),
    [
        ("http://127.0.0.1:8000/v1", OpenAICompatible, "http://127.0.0.1:8000/v1"),
        ("https://api.openai.com/v1", OpenAICompatible, "https://api.openai.com/v1"),
        ("https://api.anthropic.com", AnthropicMessages, "https://api.anthropic.com"),
        ("https://api.anthropic.com/v1/", AnthropicMessages, "https://api.anthropic.com"),
        ("anthropic+http://gateway:9/x", AnthropicMessages, "http://gateway:9/x"),
    ],
)
def test_the_url_chooses_the_back_end(url: str, kind: type[OpenAICompatible | AnthropicMessages], base: str) -> None:
    found = build(named(url, AFTERCHECK_JUDGE_MODE="plain", AFTERCHECK_JUDGE_MODEL="m", AFTERCHECK_JUDGE_KEY="k"))

    assert isinstance(found, OpenAICompatible | AnthropicMessages)
    assert type(found) is kind
    assert (found.endpoint.url, found.endpoint.model, found.endpoint.key) == (base, "m", "k")
    assert found.info.parameters["mode"] == "plain"


def test_auto_probes_at_the_first_answer() -> None:
    found = build(named("https://api.anthropic.com"))

    assert isinstance(found, Probing)
    assert found.info.parameters == {"mode": "auto"}


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://x/v1", "http://", "file://host/x", "anthropic+file:///path"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="JUDGE_URL"):
        build(named(url))


@pytest.mark.req("S29")
def test_a_local_folder_has_to_be_pinned_and_is_checked_first(tmp_path: Path) -> None:
    folder = tmp_path / "a model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"\x08" + b"\x00" * 7 + b"{}      ")
    with pytest.raises(ModelRefused, match=r"not in models\.lock"):
        build(named(folder.as_uri()))

    lock.write(tmp_path / "own.lock", lock.pin(folder, name="a model", revision="r1", kind="causal"))
    (folder / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(ModelRefused, match="may carry code"):
        build(named(folder.as_uri(), AFTERCHECK_MODELS_LOCK=str(tmp_path / "own.lock")))
    (folder / "pytorch_model.bin").unlink()
    (folder / "config.json").write_text("[]")
    with pytest.raises(ModelRefused, match="not the released file"):
        build(named(folder.as_uri(), AFTERCHECK_MODELS_LOCK=str(tmp_path / "own.lock")))
