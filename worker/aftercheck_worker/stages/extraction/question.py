"""The question of an answer: the user's words without the template around them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from aftercheck_worker.stages.extraction.shape import normalised

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aftercheck_schemas import Passage
    from aftercheck_worker.stages.extraction.prompt import Prompt

_MIN_KNOWN: Final = 12
"""A shorter text stands in a longer one by chance, unless it is a line of its own."""
_PARAGRAPH: Final = re.compile(r"\n[ \t]*\n")


def question_of(prompt: Prompt, variable: str, root: str, passages: Iterable[Passage]) -> str:
    """Choose the question.

    A labelled question in the last user turn wins. Without a label, the root's input or a prompt variable that
    stands in the turn is the question, the rest is template. A turn that only repeats the documents has its
    question in the root's input. Else the turn's text without its context block is the question.

    Args:
        prompt: the answer's prompt.
        variable: the question among the prompt variables, "" for none.
        root: what the app's root span was asked, "" for none.
        passages: the evidence found.
    """
    template = prompt.template
    if template.question:
        return _narrowed(template.question, root)
    asked = prompt.asked.strip()
    for known in (variable, root):
        if known and known in asked and (len(known) >= _MIN_KNOWN or known in asked.split("\n")):
            return known
    if not asked:
        return variable or root
    if (variable or root) and _is_evidence(asked, passages):
        return variable or root
    if template.found:
        return _last_paragraph(template.rest) or variable or root
    return asked


def _narrowed(question: str, root: str) -> str:
    """A label may cover more than the question; the root's words inside it are the question itself."""
    return root if root and len(root) >= len(question) // 2 and root in question else question


def _is_evidence(asked: str, passages: Iterable[Passage]) -> bool:
    """True when the passages explain all that was said to the model."""
    rest = normalised(asked)
    for passage in passages:
        if passage.kind != "user_input":
            rest = rest.replace(normalised(passage.text), " ")
    return sum(1 for word in rest.split() if any(map(str.isalnum, word))) <= 2


def _last_paragraph(text: str) -> str:
    """The last paragraph that asks, else the last paragraph: before it stand instructions."""
    paragraphs = [piece.strip() for piece in _PARAGRAPH.split(text) if piece.strip()]
    asking = [piece for piece in paragraphs if piece.endswith(("?", "？"))]
    return (asking or paragraphs or [""])[-1]
