"""Runs checks of the loop in this process: one model thread, a line whose wait is known, a deadline (R32)."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from aftercheck_schemas import Evaluation, Interaction
from aftercheck_worker import pipeline
from aftercheck_worker.api.problem import Problem, unavailable
from aftercheck_worker.evaluators import Evaluator

logger = logging.getLogger(__name__)
_T = TypeVar("_T")

SMOOTHING: Final = 0.2
"""Weight of the newest check in the mean of seconds per check."""
MOST_RETRY: Final = 30
"""Longest Retry-After in seconds."""


class Line:
    """Checks that run or wait. Admits one when it can be done before its deadline, by the mean of the last checks.

    Args:
        most: checks that run or wait, whatever the estimate says: what bounds memory.
        seconds: deadline of a check, waiting included.
    """

    def __init__(self, *, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._lock = threading.Lock()
        self._inside = 0
        self._mean = 0.0

    def enter(self) -> float | None:
        """Take a place; None when admitted, otherwise after how many seconds it is worth another try."""
        with self._lock:
            wait = (self._inside + 1) * self._mean
            late = wait > self._seconds and self._inside > 0
            if self._inside < self._most and not late:
                self._inside += 1
                return None
            # Half of the line will be gone by then; a full drain would leave the model idle.
            return max(1.0, wait - self._seconds if late else wait / 2)

    def leave(self, seconds: float | None) -> None:
        """Give the place back; `seconds` is how long the check ran, None when it never did."""
        with self._lock:
            self._inside -= 1
            if seconds is not None:
                self._mean += (seconds - self._mean) * (SMOOTHING if self._mean else 1.0)


class Checker:
    """One thread for the model; callers that it cannot serve in time hear 503 at once, with when to come back.

    Args:
        evaluator: thread-safe back end; used by one thread at a time.
        most: checks that run or wait.
        seconds: deadline of a check, waiting included.
        pairs: largest answer in estimated claim x passage pairs.
    """

    def __init__(self, evaluator: Evaluator, *, most: int, seconds: float, pairs: int) -> None:
        self.evaluator = evaluator
        self._seconds, self._pairs = seconds, pairs
        self._line = Line(most=most, seconds=seconds)
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checker")

    async def check(self, interaction: Interaction) -> Evaluation:
        """Evaluate one answer.

        Raises:
            Problem: 503 when the line is full, the deadline passed or the verifier is down; 413 when too large.
        """
        if pipeline.estimated_pairs(interaction) > self._pairs:
            raise Problem(413, "too_large", "the answer times its evidence is too large for a check in the loop")
        wait = self._line.enter()
        if wait is not None:
            raise unavailable("all places for checks are taken", retry=min(MOST_RETRY, math.ceil(wait)))
        future = self._threads.submit(self._run, interaction)
        future.add_done_callback(self._gone)  # the place is free when the thread is, not when the caller gave up
        try:
            found = await asyncio.wait_for(asyncio.wrap_future(future), self._seconds)
        except TimeoutError:
            future.cancel()
            raise unavailable(f"the check took longer than {self._seconds:g} s") from None
        except Exception as error:
            # No traceback: an error's text may quote the answer.
            logger.error("the verifier failed: %s", type(error).__name__, extra={"action": "check_failed"})
            raise unavailable(f"the verifier failed ({type(error).__name__})") from error
        return found

    async def elsewhere(self, work: Callable[[], _T]) -> _T:
        """Run work that uses the evaluator on its thread, after the checks that wait."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Stop the thread after the check that it runs."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _run(self, interaction: Interaction) -> Evaluation:
        began = time.monotonic()
        try:
            return pipeline.evaluate_batch([interaction], self.evaluator)[0]
        finally:
            self._line.leave(time.monotonic() - began)

    def _gone(self, future: Future[Evaluation]) -> None:
        if future.cancelled():
            self._line.leave(None)
