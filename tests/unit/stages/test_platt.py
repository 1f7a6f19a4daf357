"""Claim calibration: what miscalibration it undoes, from how many labels, and what its cut promises."""

from __future__ import annotations

import sys

import msgspec
import numpy as np
import pytest

from aftercheck_schemas.vocabulary import ClaimType
from aftercheck_worker.stages.platt import OWN, ClaimCalibration, Label, calibration_error, fit, risk_control

SEED = 20261201


def sample(
    count: int, kind: ClaimType = "fact", *, shift: float = 0.0, scale: float = 1.0, seed: int = SEED
) -> list[Label]:
    """Claims whose raw logit is the true one, stretched and shifted."""
    rng = np.random.default_rng(seed)
    true = rng.normal(0.0, 1.5, count)
    supported = rng.random(count) < 1 / (1 + np.exp(-true))
    raw = 1 / (1 + np.exp(-(scale * true + shift)))
    return [Label(type=kind, probability=float(p), supported=bool(s)) for p, s in zip(raw, supported, strict=True)]


@pytest.mark.req("R24")
@pytest.mark.parametrize(("shift", "scale"), [(1.5, 1.0), (0.0, 3.0), (-1.0, 0.5)])
def test_it_undoes_a_shift_and_a_stretch(shift: float, scale: float) -> None:
    curve = fit(sample(4000, shift=shift, scale=scale), "v").pooled
    assert curve.slope == pytest.approx(1 / scale, rel=0.12)
    assert curve.intercept == pytest.approx(-shift / scale, abs=0.15)
    assert curve.brier_after < curve.brier_before
    assert curve.ece_after < curve.ece_before
    assert curve.n == 4000


def test_a_type_has_its_own_curve_from_a_hundred_labels() -> None:
    few, enough = sample(OWN - 1, "number", shift=2.0), sample(OWN, "quote", shift=-2.0)
    found = fit([*sample(500), *few, *enough], "v")
    assert set(found.by_type) == {"fact", "quote"}
    assert found.apply("number", 0.7) == found.pooled.apply(0.7)
    assert found.apply("quote", 0.5) > 0.7 > found.pooled.apply(0.5)


def test_it_never_turns_the_ranking_around() -> None:
    backwards = [msgspec.structs.replace(label, probability=1 - label.probability) for label in sample(300)]
    found = fit(backwards, "v")
    assert found.apply("fact", 0.9) >= found.apply("fact", 0.1)


def test_separable_labels_stay_finite() -> None:
    found = fit(
        [Label(type="fact", probability=0.9 if n % 2 else 0.1, supported=bool(n % 2)) for n in range(40)], "v"
    )
    assert 0.5 < found.apply("fact", 0.9) < 1.0


@pytest.mark.parametrize("supported", [True, False])
def test_one_class_teaches_nothing(supported: bool) -> None:
    with pytest.raises(ValueError, match="both classes"):
        fit([Label(type="fact", probability=0.5, supported=supported)] * 10, "v")


def test_the_version_moves_with_the_content_and_survives_a_file() -> None:
    one, two = fit(sample(300), "v"), fit(sample(300, seed=1), "v")
    assert one.version != two.version
    assert one.version != msgspec.structs.replace(one, evaluator_version="w").version
    assert msgspec.json.decode(msgspec.json.encode(one), type=ClaimCalibration).version == one.version


def test_the_calibration_error_of_a_constant() -> None:
    supported = np.array([1.0, 0.0] * 150)
    assert calibration_error(np.full(300, 0.8), supported) == pytest.approx(0.3, abs=0.05)


def test_risk_control_holds_in_expectation() -> None:
    sys.stdout.write(f"seed {SEED}\n")
    calibration = fit(sample(1000), "v")
    missed: list[float] = []
    for turn in range(200):
        cut = risk_control(sample(120, seed=turn), calibration, 0.1).threshold
        fresh = [one for one in sample(400, seed=10_000 + turn) if not one.supported]
        missed.append(float(np.mean([calibration.apply(one.type, one.probability) >= cut for one in fresh])))
    assert 0.07 <= float(np.mean(missed)) <= 0.105  # at most alpha, and not needlessly below it


def test_risk_control_says_when_labels_are_too_few() -> None:
    calibration = fit(sample(300), "v")
    few = [one for one in sample(100) if not one.supported][:8]
    with pytest.raises(ValueError, match="label at least 9"):
        risk_control(few, calibration, 0.1)
    assert risk_control([*few, few[0]], calibration, 0.1).threshold > 0
