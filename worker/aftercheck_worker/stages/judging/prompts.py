"""Prompts: fixed instructions from files, judged text only as JSON between random delimiters (trust S10).

Nothing judged is ever put into a format string. The delimiter is fresh for every call (128 bit), so data cannot
close it; control tokens of chat templates and reasoning tags inside the data are broken up by a zero-width space.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Final, Literal

import msgspec

from aftercheck_schemas import Claim, Passage

Criterion = Literal["faithfulness", "context_relevance", "answer_relevance"]
CRITERIA: Final[tuple[Criterion, ...]] = ("faithfulness", "context_relevance", "answer_relevance")

ASK_AGAIN: Final = "`faults` says why your last reply could not be used. Answer again; copy quotes letter for letter."
_NO_FAULTS: Final[Mapping[str, str]] = {}
_ZERO_WIDTH: Final = "\u200b"
_CONTROL: Final = re.compile(
    r"<\|[^|<>]{1,40}\|>"
    r"|</?(?:think|thinking|system|user|assistant|tool|function|verdicts?|claims?|sources?|s|im_start|im_end)\b[^>]{0,40}>"
    r"|\[/?(?:INST|SYS)\]|<<\/?SYS>>|\\boxed|```"
    r"|^[^\S\n]*(?:system|assistant|user|human|developer|verdict|score)\s*:",
    re.IGNORECASE | re.MULTILINE,
)
_SUSPICIOUS: Final = re.compile(
    r"ignore (?:all |any |the )?(?:previous|above|prior|other)|disregard (?:all|the|any|previous)"
    r"|you are now|new instructions?|system prompt|(?:mark|rate|grade|label|score|judge) (?:this|every|all|each|the)"
    r"[^.]{0,40}\b(?:supported|correct|true|faithful|1\.0|10/10)"
    r"|\"status\"\s*:\s*\"supported\"|игнорируй|проигнорируй|ігноруй|zignoruj|ignoriere"
    r"|(?:output|respond|reply|answer) (?:only |exactly )?(?:with )?[\"'{]",
    re.IGNORECASE,
)
_MAY_CONTROL: Final = re.compile(r"[<\[\\`:]")
"""Every control token holds one of these; most texts hold none, and this search costs a tenth."""
_MAY_STEER: Final = (
    *("ignor", "disregard", "you are now", "new instruction", "system prompt", "status"),
    *("mark ", "rate ", "grade ", "label ", "score ", "judge ", "output ", "respond ", "reply ", "answer "),
)
"""Every match of `_SUSPICIOUS` in plain ASCII holds one of these."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One call: the fixed instructions and the data message."""

    criterion: Criterion
    system: str
    user: str


@lru_cache(maxsize=8)
def instructions(criterion: Criterion) -> str:
    """The fixed instructions of a criterion, from `prompts/<criterion>.md`."""
    return (resources.files("aftercheck_worker") / "prompts" / f"{criterion}.md").read_text(encoding="utf-8")


def fingerprint() -> str:
    """sha256 over all prompt files and the neutralising rules; part of `evaluator_version` (R25)."""
    parts = [instructions(criterion) for criterion in CRITERIA]
    return hashlib.sha256("\x00".join([*parts, _CONTROL.pattern, _SUSPICIOUS.pattern]).encode()).hexdigest()


def neutralise(text: str) -> str:
    """Break up role, reasoning and verdict tokens in judged text; the reader still sees every letter.

    What is broken up can leave a token of its neighbours' letters (four backticks hold three), so it is done until
    none is left; every pass puts a zero-width space behind the first letter of each one that it finds.
    """
    while _controls(text):
        text = _CONTROL.sub(lambda match: match.group()[0] + _ZERO_WIDTH + match.group()[1:], text)
    return text


def suspicious(*texts: str) -> bool:
    """True when judged text looks like instructions to a judge. A label on the verdict, never a score (S16)."""
    return any(_steers(text) or _controls(text) for text in texts)


def _controls(text: str) -> bool:
    return _MAY_CONTROL.search(text) is not None and _CONTROL.search(text) is not None


def _steers(text: str) -> bool:
    if text.isascii():  # beyond ASCII there are letters that only the pattern knows as the same
        plain = text.lower()
        if not any(part in plain for part in _MAY_STEER):
            return False
    return _SUSPICIOUS.search(text) is not None


def faithfulness(
    question: str,
    claims: Sequence[Claim],
    passages: Sequence[Passage],
    delimiter: str,
    faults: Mapping[str, str] = _NO_FAULTS,
) -> Prompt:
    """Ask for one verdict per claim.

    Args:
        question: context only, never evidence.
        claims: the claims of one call.
        passages: usable sources in the order to show.
        delimiter: fresh random text, >= 96 bit; it must not occur in the data.
        faults: what was wrong with the last reply, by claim; empty for the first one.
    """
    data = {
        "sources": [
            {"source_id": neutralise(p.source_id), "kind": p.kind, "cut_off": p.elided, "text": neutralise(p.text)}
            for p in passages
        ],
        "question": neutralise(question),
        "claims": [{"claim_id": c.id, "text": neutralise(_with_premise(c))} for c in claims],
    }
    return _prompt("faithfulness", data, delimiter, faults)


def context_relevance(
    question: str, passages: Sequence[Passage], delimiter: str, faults: Mapping[str, str] = _NO_FAULTS
) -> Prompt:
    """Ask for one score per passage (R21)."""
    data = {
        "question": neutralise(question),
        "passages": [{"source_id": neutralise(p.source_id), "text": neutralise(p.text)} for p in passages],
    }
    return _prompt("context_relevance", data, delimiter, faults)


def answer_relevance(question: str, answer: str, delimiter: str, faults: Mapping[str, str] = _NO_FAULTS) -> Prompt:
    """Ask which parts of the question are answered (R21)."""
    data = {"question": neutralise(question), "answer": neutralise(answer)}
    return _prompt("answer_relevance", data, delimiter, faults)


def _with_premise(claim: Claim) -> str:
    return f"{claim.premise} {claim.text}" if claim.premise else claim.text


def _prompt(criterion: Criterion, data: Mapping[str, object], delimiter: str, faults: Mapping[str, str]) -> Prompt:
    """Put the data between the delimiters; the faults of the last reply too, for they may quote what it echoed."""
    if faults:
        data = {**data, "faults": {name: neutralise(fault[:200]) for name, fault in faults.items()}}
    body = json.dumps(data, ensure_ascii=False).replace(delimiter, "")
    lines = (
        f"Data between the two lines {delimiter} follows.",
        delimiter,
        body,
        delimiter,
        *([ASK_AGAIN] if faults else []),
        "Reply with the JSON object.",
    )
    user = "\n".join(lines)
    return Prompt(criterion=criterion, system=instructions(criterion), user=user)
