"""An evaluator that does what a claim says: sleeps, dies, or runs out of memory. Used by real worker processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from aftercheck_worker import testing
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.verification import Findings, Item

NAME = "tests.faults.scripted:evaluator"
SLOW, POISON, FAT = "slow", "poison", "fat"


class Obedient(testing.ScriptedVerifier):
    """Acts on the first word of the answer."""

    def verify(self, items: Sequence[Item]) -> list[Findings]:
        """Sleep, die or raise MemoryError as told, then find everything supported."""
        for item in items:
            word = item.interaction.answer.split(" ", 1)[0]
            if word == SLOW:
                time.sleep(float(item.interaction.answer.split(" ", 2)[1]))
            elif word == POISON:
                os.kill(os.getpid(), signal.SIGKILL)
            elif word == FAT:
                raise MemoryError
        return super().verify(items)


def evaluator(_: Settings) -> Evaluator:
    """Build it; named by AFTERCHECK_EVALUATOR."""
    return testing.evaluator(Obedient())
