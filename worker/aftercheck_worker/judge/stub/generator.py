"""The stub as a `Generator` without HTTP, for the tests and benchmarks of everything behind the endpoint."""

from __future__ import annotations

from aftercheck_worker.judge.stub.asked import Unsound, read
from aftercheck_worker.judge.stub.modes import Mode, Reused, Stub
from aftercheck_worker.models.base import Completion, GeneratorError, ModelInfo
from aftercheck_worker.stages.judging.schemas import SCHEMAS

CHARS_PER_TOKEN = 4


class StubGenerator:
    """Answers in this process; refuses what the endpoint would refuse."""

    def __init__(self, stub: Stub | None = None) -> None:
        self.stub = stub or Stub()

    @property
    def info(self) -> ModelInfo:
        """The stub is no model; its name says so on every verdict."""
        return ModelInfo(name=name(self.stub.mode), revision="1")

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`.

        Raises:
            GeneratorError: the prompt is unsound, or the mode sends something that is no completion.
        """
        del seed, max_tokens
        try:
            asked = read(system, user)
            reply = self.stub.reply(asked)
        except (Unsound, Reused) as error:
            raise GeneratorError("refused", str(error) or "a delimiter was used twice") from None
        if schema is not None and schema != SCHEMAS[asked.criterion]:
            raise GeneratorError("refused", f"the schema is not that of {asked.criterion}")
        if reply.status != 200 or reply.hang or reply.size:
            raise GeneratorError("unavailable", f"HTTP {reply.status}")
        return Completion(
            text=reply.text,
            cut=reply.cut,
            prompt_tokens=(len(system) + len(user)) // CHARS_PER_TOKEN,
            completion_tokens=len(reply.text) // CHARS_PER_TOKEN,
        )


def name(mode: Mode) -> str:
    """The model name that a stub in this mode answers to."""
    return f"stub-{mode}"
