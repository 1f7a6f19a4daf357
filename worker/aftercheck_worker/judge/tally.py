"""What the calls about one answer cost."""

from __future__ import annotations

from aftercheck_worker.models.base import Completion


class Tally:
    """Counts calls, tokens and void quotes of one answer. Used by one event loop only."""

    def __init__(self) -> None:
        self.calls = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.void_quotes = 0

    def add(self, completion: Completion) -> None:
        """Count one reply, retries and re-asks included."""
        self.calls += 1
        self.prompt_tokens += completion.prompt_tokens
        self.completion_tokens += completion.completion_tokens
