"""The answer as the claim splitter reads it, and the drafts that it makes of it."""

from __future__ import annotations

import functools
import re
from typing import Final

import msgspec

from aftercheck_schemas.interaction import Interaction
from aftercheck_schemas.vocabulary import ClaimType
from aftercheck_worker.text.language import detect
from aftercheck_worker.text.lexicon import Category, Language, load, matches
from aftercheck_worker.text.normalise import flat, plain

ACTION_KINDS: Final = frozenset({"tool_result", "action_log", "telemetry"})
CITATION: Final = re.compile(
    r"\[(\^?[\w.:/-]{1,40}(?:\s*[,;]\s*\^?[\w.:/-]{1,40})*)\](?!\()|【([^】\n]{1,60})】"
    r"|\((?:source|src|doc|ref)[: ]+([\w.:/ -]{1,60})\)",
    re.IGNORECASE,
)
WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
DIGIT: Final = re.compile(r"\d")
QUOTED: Final = re.compile(r"[\"“„«]([^\"“”„«»\n]{8,2000})[\"”“»]")
_SIBLINGS: Final[dict[Language, tuple[Language, ...]]] = {
    "en": ("en",),
    "pl": ("pl", "en"),
    "de": ("de", "en"),
    "uk": ("uk", "ru", "en"),
    "ru": ("ru", "uk", "en"),
    "other": ("en", "pl", "de"),
}
"""Languages whose patterns are tried: short sentences are easily taken for a sibling's."""


class Draft(msgspec.Struct, frozen=True):
    """A span with what was decided about it so far."""

    start: int
    end: int
    premise: str = ""
    reason: str | None = None
    type: ClaimType | None = None
    low: bool = False


class Reader(msgspec.Struct, frozen=True):
    """The answer, its length-preserving flat form, its language and whether tools ran."""

    answer: str
    flat: str
    language: Language
    question: str
    tools: bool

    def has(self, category: Category, text: str) -> bool:
        """Does a pattern of this language, of English, or of a language easily taken for it, match?"""
        lowered = _lower(text)
        return any(matches(language, category, lowered) for language in _SIBLINGS[self.language])


@functools.lru_cache(maxsize=4)
def _lower(text: str) -> str:
    """Lower a sentence once for all its categories."""
    return text.lower()


def read(interaction: Interaction) -> Reader:
    """The reader of an answer; its language is detected from answer and question."""
    answer = interaction.answer
    language = detect(answer + "\n" + interaction.question[:500])
    tools = any(passage.kind in ACTION_KINDS for passage in interaction.passages)
    return Reader(answer, flat(answer), language, interaction.question, tools)


def finite_verbs(language: Language) -> frozenset[str]:
    """The finite verbs of the lexicon, lower case."""
    return frozenset(load(language).finite_verbs)


def content_terms(text: str, language: Language) -> frozenset[str]:
    """Six-letter stems of the words that are no stop words, markup left out."""
    stop = load(language).stopwords
    return frozenset(w.lower()[:6] for w in WORD.findall(plain(text)) if len(w) > 2 and w.lower() not in stop)
