"""Type, subtype, severity and citations of a drafted claim (R9)."""

from __future__ import annotations

import re
from typing import Final

from aftercheck_schemas.evaluation import Claim
from aftercheck_schemas.vocabulary import ClaimSubtype, ClaimType, Severity
from aftercheck_worker.stages.claims.reader import CITATION, DIGIT, QUOTED, WORD, Draft, Reader
from aftercheck_worker.text.lexicon import Language, load

_LABEL: Final = re.compile(r"[\w.:/-]+")
_CODE: Final = re.compile(r"`[^`\n]+`|\{[\w.]+\}|\b\w+\(\)|--[a-z][\w-]+")
_DATE: Final = re.compile(r"\b(?:1[5-9]|20)\d\d\b|\b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b")
_NAME: Final = re.compile(r"(?<=[^\s.!?:])\s+[\"'(]*([A-ZÀ-ÖØ-ÞĄĆĘŁŃŚŹŻ\u0400-\u042f\u0490][\w'’-]+)")
_ENTITY_CODE: Final = re.compile(r"\b[A-Z][A-Z0-9-]{1,}\b|https?://\S+|\b[\w.+-]{1,64}@[\w-]{1,63}\.\w+")


def typed_claim(number: int, draft: Draft, reader: Reader) -> Claim:
    """The claim `c<number>` of a draft, with type, subtype, severity and citations."""
    text = reader.answer[draft.start : draft.end]
    flattened = reader.flat[draft.start : draft.end]
    kind, subtype = _typed(flattened, draft, reader)
    return Claim(
        id=f"c{number}",
        text=text,
        start=draft.start,
        end=draft.end,
        type=kind,
        subtype=subtype,
        severity=_severity(kind, subtype, flattened, draft, reader),
        verifiable=draft.reason is None,
        skip_reason=draft.reason,
        citations=_citations(reader.answer, draft),
        premise=draft.premise,
    )


def _typed(text: str, draft: Draft, reader: Reader) -> tuple[ClaimType, ClaimSubtype | None]:
    subtype = _subtype(text, reader)
    if draft.type is not None:
        return draft.type, subtype if draft.type != "code" else None
    if draft.reason == "plan":
        return "plan", None
    quoted = QUOTED.search(text)
    if quoted is not None and len(WORD.findall(quoted.group(1))) >= 3:
        return "quote", "attribution" if reader.has("attribution", text) else subtype
    if _CODE.search(text):
        return "code", subtype
    if _has_number(text, reader.language):
        return "number", subtype
    if reader.has("causal", text):
        return "causal", subtype
    return "fact", subtype


def _subtype(text: str, reader: Reader) -> ClaimSubtype | None:
    if reader.has("action_first_person", text) or (reader.tools and reader.has("action_passive", text)):
        return "action_done"
    if reader.has("state", text):
        return "system_state"
    if reader.has("attribution", text):
        return "attribution"
    if _DATE.search(text) or _has_month(text, reader.language):
        return "date"
    return "entity" if _NAME.search(text) or _ENTITY_CODE.search(text) else None


def _has_number(text: str, language: Language) -> bool:
    bare = CITATION.sub(" ", text)
    if DIGIT.search(bare):
        return True
    own = load(language)
    words = [word.lower() for word in WORD.findall(bare)]
    return any(own.numbers.get(word, 0) > 1 or (word in own.scales and len(word) > 2) for word in words)


def _has_month(text: str, language: Language) -> bool:
    months = load(language).months
    return any(
        word.lower() in months and word.lower() not in ("may", "mar", "jan") for word in WORD.findall(text)[:80]
    )


def _severity(kind: ClaimType, subtype: ClaimSubtype | None, text: str, draft: Draft, reader: Reader) -> Severity:
    if draft.reason is not None or draft.low:
        return "low"
    if kind in ("number", "quote") or subtype in ("action_done", "system_state"):
        return "high"
    return "high" if reader.has("high_severity", text) else "medium"


def _citations(answer: str, draft: Draft) -> tuple[str, ...]:
    """Labels of the citation markers in the claim, or right behind it."""
    text = answer[draft.start : draft.end]
    behind = re.match(r"\s?(?:\[[^\]\n]{1,40}\])+", answer[draft.end : draft.end + 80])
    labels: list[str] = []
    for found in CITATION.finditer(text + (behind.group() if behind else "")):
        inner = next(group for group in found.groups() if group is not None)
        labels += [label.strip("^") for label in _LABEL.findall(inner)]
    return tuple(labels)
