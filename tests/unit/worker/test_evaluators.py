"""Evaluator names and versions."""

from __future__ import annotations

import msgspec
import pytest

from aftercheck_worker import evaluators, settings, testing
from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.models.lexical import LexicalScorer
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
