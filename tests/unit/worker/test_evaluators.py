"""Evaluator names and versions."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from aftercheck_worker import evaluators, settings, testing
from aftercheck_worker.errors import ConfigurationError, ModelRefused
from aftercheck_worker.models import lock, store
from aftercheck_worker.models.lexical import LexicalScorer
from aftercheck_worker.models.registry import SHIPPED
from aftercheck_worker.models.store import Store
from aftercheck_worker.stages.scoring import Policy, RiskProfile
from aftercheck_worker.stages.verification import LexicalVerifier

PLAIN = settings.load({})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluators, "_builders", dict(evaluators._builders))
    monkeypatch.setattr(evaluators, "_preferred", [])


@pytest.mark.req("R25")
def test_the_version_is_stable_and_is_the_hash_of_the_spec() -> None:
    first, second = (evaluators.resolve("lexical-v1", PLAIN) for _ in range(2))

    assert first.version == second.version
    assert len(first.version) == 64
    assert first.spec["name"] == "lexical-v1"
    msgspec.json.encode(first.spec)


@pytest.mark.req("R25")
@pytest.mark.parametrize(
    "policy",
    [Policy(action_from="v2"), Policy(profile=RiskProfile(name="strict", block=0.6))],
    ids=["action", "risk"],
)
def test_whatever_changes_a_verdict_changes_the_version(policy: Policy) -> None:
    verifier = LexicalVerifier(LexicalScorer())

    base = evaluators.assemble("lexical-v1", verifier, policy=Policy(), quality="smoke")
    other = evaluators.assemble("lexical-v1", verifier, policy=policy, quality="smoke")

    assert base.version != other.version


@pytest.mark.req("R25")
def test_other_code_is_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    before = evaluators.resolve("lexical-v1", PLAIN).version

    def other(names: tuple[str, ...]) -> str:
        return "/".join(names)

    monkeypatch.setattr(evaluators, "code", other)

    assert evaluators.resolve("lexical-v1", PLAIN).version != before


@pytest.mark.req("R13")
@pytest.mark.usefixtures("registry")
def test_default_is_the_preferred_one_that_is_installed() -> None:
    trained = testing.evaluator(name="trained")
    evaluators.register("absent", lambda _: None, preferred=True)
    evaluators.register("trained", lambda _: trained, preferred=True)

    assert evaluators.resolve("default", PLAIN) is trained


@pytest.mark.req("R13")
@pytest.mark.usefixtures("registry")
def test_default_without_a_trained_verifier_is_lexical_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    found = evaluators.resolve("default", PLAIN)

    assert (found.name, found.quality) == ("lexical-v1", "smoke")
    assert "quality=smoke" in caplog.text


@pytest.mark.usefixtures("registry")
def test_unknown_and_absent_evaluators_are_refused_in_one_line() -> None:
    evaluators.register("absent", lambda _: None)

    with pytest.raises(ConfigurationError, match=r"no evaluator 'nli'.*lexical-v1"):
        evaluators.resolve("nli", PLAIN)
    with pytest.raises(ConfigurationError, match="model is not installed"):
        evaluators.resolve("absent", PLAIN)


def test_a_model_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SHIPPED", tmp_path / "none")
    found = settings.load({"AFTERCHECK_VERIFIER_MODEL": evaluators.ENGLISH, "AFTERCHECK_MODELS": str(tmp_path)})
    with pytest.raises(ModelRefused, match="not installed"):
        evaluators.resolve(evaluators.MODEL, found)
    Store(tmp_path, lock.read()).fetch(evaluators.ENGLISH, str(SHIPPED / evaluators.ENGLISH))
    own, shipped = (evaluators.resolve(name, found) for name in (evaluators.MODEL, evaluators.GROUNDING))
    assert own.verifier.models == shipped.verifier.models
    assert own.version != shipped.version
    with pytest.raises(ConfigurationError, match="cannot check claims"):
        evaluators.resolve(evaluators.MODEL, found.model_copy(update={"verifier_model": "all-minilm-l6-v2"}))
    with pytest.raises(ConfigurationError, match="not installed"):
        evaluators.resolve(evaluators.MODEL, settings.load({}))
