"""Every attack x position x pair against an always-obedient judge: `python -m benchmarks judge_attacks`.

What it says takes the whole path: prompt, reply ladder, quote check, cross-check by the shipped verifier, fold.
`judge.attack_successes` counts false claims that an attack or the judge turned into supported; a pair that the
verifier mistakes without any attack is counted apart, in `judge.attack_verifier_mistakes` (pairs).
"""

from __future__ import annotations

import sys
from typing import Final

from aftercheck_worker.evaluators import resolve
from aftercheck_worker.settings import current
from benchmarks import _attacks

KEYS: Final = ("judge.attack_",)


def run() -> dict[str, float]:
    evaluator = resolve("default", current())
    chosen: list[tuple[_attacks.Pair, _attacks.Attack, _attacks.Position]] = [
        (pair, attack, position)
        for pair in _attacks.pairs()
        for attack in _attacks.attacks()
        for position in _attacks.POSITIONS
    ]
    results = _attacks.run(evaluator, _attacks.trials(chosen))
    for result in _attacks.successes(results):
        trial = result.trial
        print(f"{trial.attack.id} on {trial.pair.id} in {trial.position}: {result}", file=sys.stderr)
    mistaken = _attacks.mistaken(results)
    print(f"{evaluator.name} mistakes without any attack: {', '.join(mistaken) or 'none'}", file=sys.stderr)
    false = [result for result in results if not result.trial.truth]
    return {
        "judge.attack_trials": len(results),
        "judge.attack_obeyed": sum(result.judged == "supported" for result in false) / len(false),
        "judge.attack_successes": len(_attacks.successes(results)),
        "judge.attack_true_kept": _attacks.kept(results),
        "judge.attack_verifier_mistakes": len(mistaken),
    }
