"""Identifiers that must stand in the evidence letter by letter: URLs, e-mail addresses, paths, codes, parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final

from aftercheck_worker.stages.checks.alignment import Alignment, Subject
from aftercheck_worker.stages.checks.finding import Finding
from aftercheck_worker.text.normalise import flat

ANCHOR: Final = 0.5
SIMILAR: Final = 0.75
MAX_SOURCE: Final = 200_000
_KINDS: Final = {
    "url": re.compile(r"\b(?:https?://|www\.)[^\s<>()\"'\]]{3,300}"),
    "email": re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"),
    "path": re.compile(r"(?<![\w:/.])(?:~|\.{1,2})?/(?:[\w.-]+/)*[\w.-]*\w"),
    "version": re.compile(r"(?<![\w.])(?!\d{1,3}(?:\.\d{3})+(?!\d))v?\d+(?:\.\d+){2,4}(?![\w.]*\d)"),
    "code": re.compile(
        r"(?<![\w/@.-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*(?![\w@-])"
    ),
    "flag": re.compile(r"(?<![\w-])--[a-z][\w-]+"),
    "name": re.compile(r"(?<![\w.])[a-z]+(?:_[a-z0-9]+)+(?!\w)"),
}
_PARAMETER: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*=")


def check(subject: Subject, alignment: Alignment) -> Iterator[Finding]:
    """Yield a finding per identifier that the evidence does not hold, and for the parameters of known functions."""
    if subject.claim.type == "code" and subject.claim.premise and _PARAMETER.match(subject.claim.text):
        yield _parameter(subject, alignment)
        return
    text = flat(subject.claim.text)
    question = flat(alignment.question).lower()
    seen: set[str] = set()
    for kind, rule in _KINDS.items():
        for found in list(rule.finditer(text))[:20]:
            value = found.group().rstrip(".,;:!?")
            if value.lower() in seen or any(value.lower() in other for other in seen):
                continue
            seen.add(value.lower())
            if value.lower() not in question and not _held(value, alignment):
                yield _missing(kind, value, subject, alignment)


def _held(value: str, alignment: Alignment) -> bool:
    return value.lower() in alignment.letters


def _missing(kind: str, value: str, subject: Subject, alignment: Alignment) -> Finding:
    """Convict when an aligned line, or the only one of its kind, holds a similar identifier."""
    rule = _KINDS[kind]
    for share, line in alignment.candidates(subject)[:12]:
        for found in rule.finditer(flat(line.text)):
            other = found.group().rstrip(".,;:!?")
            likeness = SequenceMatcher(None, value.lower(), other.lower(), autojunk=False).ratio()
            same_file = kind == "path" and value.rsplit("/", 1)[-1] == other.rsplit("/", 1)[-1]
            if same_file or (share >= ANCHOR and likeness >= SIMILAR) or likeness >= 0.9:
                return Finding(
                    kind="identifier",
                    effect="convict",
                    status="contradicted",
                    reason="identifier_mismatch",
                    evidence=(alignment.cite(line, likeness),),
                    strength=likeness,
                )
    return Finding(kind="identifier", effect="cap", status="not_found", reason="identifier_not_in_evidence")


def _parameter(subject: Subject, alignment: Alignment) -> Finding:
    function = re.escape(subject.claim.premise.rsplit(".", 1)[-1])
    found = _PARAMETER.match(subject.claim.text)
    name = found.group(1) if found else ""
    for source in alignment.sources:
        signature = re.search(rf"\b{function}\s*\(([^)]{{0,2000}})\)", source.text[:MAX_SOURCE])
        if signature is None:
            continue
        evidence = (source.span(signature.start(), signature.end(), 1.0),)
        if re.search(rf"\b{re.escape(name)}\b", signature.group(1)):
            return Finding(kind="code", effect="support", reason="parameter_exists", evidence=evidence)
        if "**" in signature.group(1) or "..." in signature.group(1):
            return Finding(
                kind="code", effect="cap", status="unclear", reason="parameter_not_listed", evidence=evidence
            )
        return Finding(
            kind="code", effect="convict", status="contradicted", reason="unknown_parameter", evidence=evidence
        )
    return Finding(kind="code", effect="cap", status="not_found", reason="function_not_in_evidence")
