"""What stands around every call of the judge: breaker, budget, and no tracing of our own calls (O-46).

The generator keeps its own semaphore, deadlines and retries; here is what must hold over many answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator as Yields
from typing import Final, Protocol, runtime_checkable

from opentelemetry import context

from aftercheck_worker.judge.breaker import Breaker
from aftercheck_worker.judge.budget import Reserved
from aftercheck_worker.models.base import Completion, Generator, GeneratorError, ModelInfo

CHARS_PER_TOKEN: Final = 3
"""For the estimate that is reserved; real texts have 3 to 4 characters per token, Cyrillic ones fewer."""
DOWN: Final = frozenset({"unavailable", "deadline", "untrusted"})
"""Reasons that count against the endpoint."""
SUPPRESS: Final = (
    "suppress_instrumentation",
    "suppress_http_instrumentation",
    "suppress_language_model_instrumentation",
)
"""Context keys that OpenTelemetry, its HTTP clients and OpenLLMetry look at before they open a span."""


class Purse(Protocol):
    """What the guard needs of a budget."""

    async def reserve(self, prompt: int, completion: int) -> Reserved:
        """Set aside what a call may cost at most."""
        ...

    async def settle(self, reserved: Reserved, completion: Completion | None) -> None:
        """Replace the reservation by the true cost."""
        ...


@runtime_checkable
class Closing(Protocol):
    """A generator with connections to end."""

    async def close(self) -> None:
        """Close all connections."""
        ...


class Spent:
    """Calls and tokens since `take`, failed answers included. Used by one event loop only."""

    def __init__(self) -> None:
        self.calls = self.prompt_tokens = self.completion_tokens = 0

    def add(self, completion: Completion) -> None:
        """Count one reply."""
        self.calls += 1
        self.prompt_tokens += completion.prompt_tokens
        self.completion_tokens += completion.completion_tokens

    def take(self) -> tuple[int, int, int]:
        """Return calls, prompt tokens and completion tokens, and start again from 0."""
        found = self.calls, self.prompt_tokens, self.completion_tokens
        self.calls = self.prompt_tokens = self.completion_tokens = 0
        return found


class Guarded:
    """A `Generator` that refuses early: `circuit_open` and `budget` cost nothing and wait for nothing."""

    def __init__(self, generator: Generator, purse: Purse | None = None, breaker: Breaker | None = None) -> None:
        self._generator, self._purse = generator, purse
        self.breaker = breaker or Breaker()
        self.spent = Spent()

    @property
    def info(self) -> ModelInfo:
        """The generator's identity."""
        return self._generator.info

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`.

        Raises:
            GeneratorError: also `circuit_open` and `budget`.
        """
        if not self.breaker.allows():
            raise GeneratorError("circuit_open", "the endpoint failed repeatedly; it is asked again soon")
        try:
            reserved = await self._reserve(len(system) + len(user), max_tokens)
        except BaseException:
            self.breaker.release()
            raise
        try:
            with untraced():
                completion = await self._generator.generate(
                    system, user, schema=schema, max_tokens=max_tokens, seed=seed
                )
        except GeneratorError as error:
            self.breaker.record(answered=error.reason not in DOWN)
            if error.reason != "deadline":  # a call that we gave up may still be paid for: its reservation stays
                await self._settle(reserved, None)
            raise
        except asyncio.CancelledError:
            self.breaker.record(answered=False)  # the answer's own deadline: the endpoint was too slow
            raise
        except BaseException:
            self.breaker.release()
            raise
        self.breaker.record(answered=True)
        self.spent.add(completion)
        await self._settle(reserved, completion)
        return completion

    async def close(self) -> None:
        """Close the generator's connections."""
        if isinstance(self._generator, Closing):
            await self._generator.close()

    async def _reserve(self, characters: int, max_tokens: int) -> Reserved | None:
        if self._purse is None:
            return None
        return await self._purse.reserve(characters // CHARS_PER_TOKEN + 1, max_tokens)

    async def _settle(self, reserved: Reserved | None, completion: Completion | None) -> None:
        if reserved is not None and self._purse is not None:
            await self._purse.settle(reserved, completion)


@contextlib.contextmanager
def untraced() -> Yields[None]:
    """Let no instrumentation record what happens inside: the evaluator's calls are no product traffic."""
    current = context.get_current()
    for name in SUPPRESS:
        current = context.set_value(name, True, current)
    token = context.attach(current)
    try:
        yield
    finally:
        context.detach(token)
