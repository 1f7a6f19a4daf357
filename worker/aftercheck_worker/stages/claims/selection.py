"""Which sentences say nothing that can be checked, and why (R9, R18)."""

from __future__ import annotations

import re
from typing import Final

from aftercheck_worker.stages.claims.clauses import is_clause
from aftercheck_worker.stages.claims.reader import DIGIT, QUOTED, WORD, Reader, content_terms, finite_verbs

SKIP_REASONS: Final = (
    "greeting", "question", "offer", "hedge", "refusal", "meta", "opinion", "heading", "code", "plan",
)  # fmt: skip
"""Closed list of reasons in `Claim.skip_reason`."""

_SINGLE_QUOTED: Final = re.compile(r"(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){8,2000}'(?!\w)")
PLAN_HEAD: Final = 40
OPINION_TERMS: Final = 6
_LATER: Final = re.compile(r" ?[,;] (?:(?:and|but|because|since|as|so) )?| (?:but|because|since) ")
_SPEAKER: Final = re.compile(r"\b(?:i|we|me|us|my|our|mine)\b", re.IGNORECASE)


def skip_reason(text: str, reader: Reader) -> str | None:
    """One of `SKIP_REASONS`, or None for a sentence that can be checked."""
    bare = QUOTED.sub(lambda found: '"' + " " * (len(found.group()) - 2) + '"', text)
    bare = _SINGLE_QUOTED.sub(lambda found: " " * len(found.group()), bare).strip(" *_'()")
    if not WORD.search(bare):
        return None if WORD.search(text) else "meta"
    for reason in ("offer", "question", "greeting", "handover", "meta", "hedge", "opinion"):
        if reader.has(reason, bare):
            if reason in ("handover", "meta", "offer") and reader.has("action_first_person", bare):
                continue
            if reason == "opinion" and _says_more(bare, reader):
                continue
            return {"handover": "offer"}.get(reason, reason)
    if reader.has("plan", bare[:PLAN_HEAD]) and not reader.has("action_first_person", bare):
        return "plan"
    if bare.endswith(":") and not DIGIT.search(bare):
        return "heading"
    return None


def _says_more(text: str, reader: Reader) -> bool:
    """Does a sentence that opens as an opinion also say what can be checked?

    "I like that the hero is played by ..." does, and "I love shellfish, but most kinds aren't harvested" does: a
    later clause of its own, not about the speaker.
    """
    if len(content_terms(text, reader.language)) > OPINION_TERMS:
        return True
    verbs = finite_verbs(reader.language)
    later = _LATER.split(text)[1:]
    return any(is_clause(part, verbs) and not _SPEAKER.search(part) for part in later)
