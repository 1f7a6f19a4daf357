"""The stub's modes: honest, obedient, or one fault after the other (F18-F21)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from aftercheck_worker.judge.stub.asked import Asked
from aftercheck_worker.judge.stub.opinion import honest, obedient
from aftercheck_worker.stages.judging.prompts import Criterion

Mode = Literal["honest", "obedient", "faulty"]
MODES: Final[tuple[Mode, ...]] = ("honest", "obedient", "faulty")
LISTS: Final[Mapping[Criterion, str]] = {
    "faithfulness": "verdicts",
    "context_relevance": "passages",
    "answer_relevance": "parts",
}
HUGE: Final = 50_000_000


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the endpoint sends.

    Attributes:
        status: HTTP status. `text` is the model's words for 200, the error's words otherwise.
        cut: the reply stopped at its token limit.
        hang: never answer. drip: seconds between single bytes. size: bytes of a body without any meaning.
    """

    status: int = 200
    text: str = ""
    headers: dict[str, str] = {}
    cut: bool = False
    hang: bool = False
    drip: float = 0.0
    size: int = 0


def _with(text: str, **changes: object) -> str:
    """The same reply with fields of each of its items changed."""
    document: dict[str, list[dict[str, object]]] = json.loads(text)
    return json.dumps({name: [item | changes for item in items] for name, items in document.items()})


FAULTS: Final[Mapping[str, Callable[[str], Reply]]] = {
    "rate_limited": lambda _: Reply(status=429, text="slow down", headers={"retry-after": "1"}),
    "rate_limited_long": lambda _: Reply(status=429, text="slow down", headers={"retry-after": "60"}),
    "server_error": lambda _: Reply(status=500, text="out of memory"),
    "hang": lambda _: Reply(hang=True),
    "drip": lambda text: Reply(text=text, drip=1.0),
    "huge": lambda _: Reply(size=HUGE),
    "redirect": lambda _: Reply(status=302, headers={"location": "http://169.254.169.254/latest/meta-data"}),
    "empty": lambda _: Reply(),
    "refusal": lambda _: Reply(text="I cannot help with that."),
    "fenced": lambda text: Reply(text=f"```json\n{text}\n```"),
    "prose": lambda text: Reply(text=f"Here you are:\n{text}\nHope this helps!"),
    "malformed": lambda text: Reply(text=text.replace('"rationale":', "rationale:").replace("]}", "],}")),
    "truncated": lambda text: Reply(text=text[: len(text) * 2 // 3], cut=True),
    "wrong_schema": lambda _: Reply(text='{"score": 0.9, "supporting_evidence": []}'),
    "not_a_number": lambda text: Reply(text=_with(text, confidence=float("nan"), score=float("nan"))),
    "out_of_range": lambda text: Reply(text=_with(text, confidence=1.7, score=1.7)),
    "unknown_status": lambda text: Reply(text=_with(text, status="yes")),
    "void_quotes": lambda text: Reply(text=_with(text, evidence=[{"source_id": "s1", "quote": "never written"}])),
}
"""Named faults; each turns an honest reply into what is sent."""


class Stub:
    """Answers prompts by a mode. Keeps the delimiters that it saw, because each may be used once.

    Args:
        mode: see `MODES`; `faulty` takes one fault after the other and starts again.
        faults: names of `FAULTS`, in their order; all by default. "none" stands for an honest reply.
    """

    def __init__(self, mode: Mode = "honest", *, faults: Sequence[str] = ()) -> None:
        unknown = [name for name in faults if name not in FAULTS and name != "none"]
        if unknown:
            raise ValueError(f"unknown faults {unknown}; there are {', '.join(FAULTS)}, none")
        self.mode: Mode = mode
        self._faults = tuple(faults) or tuple(FAULTS)
        self._delimiters: set[str] = set()
        self.calls = 0

    def reply(self, asked: Asked) -> Reply:
        """Answer one prompt.

        Raises:
            Reused: its delimiter was seen before.
        """
        if asked.delimiter in self._delimiters:
            raise Reused
        self._delimiters.add(asked.delimiter)
        number, self.calls = self.calls, self.calls + 1
        text = as_json((obedient if self.mode == "obedient" else honest)(asked))
        name = self._faults[number % len(self._faults)] if self.mode == "faulty" else "none"
        return FAULTS[name](text) if name in FAULTS else Reply(text=text)


class Reused(Exception):
    """A delimiter that was used for an earlier prompt: judged text could know it."""


def as_json(opinion: Mapping[Criterion, list[dict[str, object]]]) -> str:
    """The reply as a model should write it."""
    return json.dumps({LISTS[name]: items for name, items in opinion.items()}, ensure_ascii=False)
