"""Runs checks of the loop in this process: one model thread, a bounded line before it, a deadline (R32)."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from aftercheck_schemas import Evaluation, Interaction
from aftercheck_worker import pipeline
from aftercheck_worker.api.problem import Problem, unavailable
from aftercheck_worker.evaluators import Evaluator

logger = logging.getLogger(__name__)


class Checker:
    """Admits up to `most` checks; above it callers hear 503 at once instead of waiting in an unbounded line.

    Args:
        evaluator: thread-safe back end; used by one thread at a time.
        most: checks that run or wait.
        seconds: deadline of a check, waiting included.
        pairs: largest answer in estimated claim x passage pairs.
    """

    def __init__(self, evaluator: Evaluator, *, most: int, seconds: float, pairs: int) -> None:
        self.evaluator = evaluator
        self._seconds, self._pairs = seconds, pairs
        self._places = threading.BoundedSemaphore(most)
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checker")

    async def check(self, interaction: Interaction) -> Evaluation:
        """Evaluate one answer.

        Raises:
            Problem: 503 when the line is full, the deadline passed or the verifier is down; 413 when too large.
        """
        if pipeline.estimated_pairs(interaction) > self._pairs:
            raise Problem(413, "too_large", "the answer times its evidence is too large for a check in the loop")
        if not self._places.acquire(blocking=False):
            raise unavailable("all places for checks are taken")
        future = self._threads.submit(self._run, interaction)
        future.add_done_callback(self._leave)  # the place is free when the thread is, not when the caller gave up
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

    def close(self) -> None:
        """Stop the thread after the check that it runs."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _run(self, interaction: Interaction) -> Evaluation:
        return pipeline.evaluate_batch([interaction], self.evaluator)[0]

    def _leave(self, future: Future[Evaluation]) -> None:
        _ = future
        self._places.release()
