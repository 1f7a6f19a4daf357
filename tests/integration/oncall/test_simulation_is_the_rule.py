"""The simulation and the shipped rules agree on the same scrapes: the values, and the moment of the page.

promtool evaluates the rule file every 5 s; the scrapes lie 2 s after each evaluation, as they do where Prometheus
runs: never at the same instant.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from aftercheck_worker.oncall import simulation
from aftercheck_worker.oncall.simulation import Counters, Numbers

pytestmark = pytest.mark.integration

STEP = int(simulation.STEP)
LABELS = 'app="shop",environment="p",evaluator="engine",quality="standard",origin="production"'


def sibling(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"oncall_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


promtool = sibling("promtool")


def notation(counter: Numbers, before: float = 1e4) -> str:
    """A value every 5 s at second 2, 7, 12, ... The counter has a long past: its first value is far from zero."""
    gap = f" _x{STEP - 1} "
    return "_x2 " + gap.join(repr(value + before) for value in counter.tolist())


def moment(scrape: int) -> int:
    """Second of the first evaluation that sees this scrape."""
    return (scrape + 1) * STEP


def written(seconds: int) -> str:
    """A time as promtool prints it."""
    hours, rest = divmod(seconds, 3600)
    parts = ((hours, "h"), (rest // 60, "m"), (rest % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def course(seed: int, per_minute: float, before: tuple[float, float], after: tuple[float, float]) -> Counters:
    """35 minutes of one kind of answers, 15 of another."""
    chance = np.random.default_rng(seed)
    first = simulation.traffic(chance, per_minute, 35 * 60, *before)
    second = simulation.traffic(chance, per_minute, 15 * 60, *after)

    def joined(one: Numbers, two: Numbers) -> Numbers:
        return np.concatenate([one, two + one[-1]])

    return Counters(
        count=joined(first.count, second.count),
        sum=joined(first.sum, second.sum),
        squares=joined(first.squares, second.squares),
    )


def series(counters: Counters) -> dict[str, str]:
    return {
        f"aftercheck_faithfulness_sum{{{LABELS}}}": notation(counters.sum),
        f"aftercheck_faithfulness_count{{{LABELS}}}": notation(counters.count),
        f"aftercheck_faithfulness_raw_count{{{LABELS}}}": notation(counters.count),
        f"aftercheck_faithfulness_sumsq_total{{{LABELS}}}": notation(counters.squares),
        'aftercheck_faithfulness_design_effect{app="shop",environment="p",evaluator="engine",quality="standard"}': (
            f"{EFFECT}x3000"
        ),
    }


EFFECT = 1.5


@pytest.mark.req("R27")
@pytest.mark.parametrize("per_minute", [6.0, 60.0])
def test_the_recorded_values_are_those_of_the_simulation(tmp_path: Path, per_minute: float) -> None:
    counters = course(11, per_minute, (0.92, 0.2), (0.5, 0.35))
    scrapes = range(365, 595, 23)
    names = {
        f"aftercheck:faithfulness_{kind}:{window}": (kind, window)
        for kind in ("count", "mean", "upper")
        for window in ("5m", "30m")
    }

    found = promtool.values(
        tmp_path,
        series(counters),
        [(written(moment(scrape)), name) for scrape in scrapes for name in names],
        interval="1s",
    )

    for name, (kind, window) in names.items():
        expected: Numbers = getattr(simulation.window(counters, window, EFFECT), kind)
        told = [found[written(moment(scrape)), name] for scrape in scrapes]
        assert told == [[pytest.approx(expected[scrape], rel=1e-6)] for scrape in scrapes], name


@pytest.mark.req("R27")
@pytest.mark.parametrize(
    ("seed", "per_minute", "after"), [(1, 60.0, (0.5, 0.35)), (2, 20.0, (0.5, 0.35)), (3, 60.0, (0.88, 0.25))]
)
def test_the_page_comes_at_the_simulated_scrape(
    tmp_path: Path, seed: int, per_minute: float, after: tuple[float, float]
) -> None:
    counters = course(seed, per_minute, (0.92, 0.2), after)
    pages = simulation.fired(simulation.active(counters, EFFECT))
    assert (pages.size > 0) == (after[0] < 0.8)
    scrapes = [*range(365, 599, 13), *(page + near for page in pages.tolist() for near in (-2, -1, 0, 1))]
    expected = {scrape: bool((pages <= scrape).any()) for scrape in scrapes}

    promtool.check(
        tmp_path,
        series(counters),
        [(written(moment(scrape)), "FaithfulnessLow", fires) for scrape, fires in sorted(expected.items())],
        interval="1s",
    )
