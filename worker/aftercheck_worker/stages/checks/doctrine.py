"""The doctrine of R15 as a table: which claims need which kind of evidence, and what its absence means.

A claim of an executed action needs the log of that action; a claim about the system's state needs telemetry or a
tool's answer. A quote or a number without a source is handled by their own checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from aftercheck_schemas.evaluation import Evidence
from aftercheck_schemas.vocabulary import ClaimSubtype, EvidenceKind
from aftercheck_worker.stages.checks.alignment import Alignment, Subject
from aftercheck_worker.stages.checks.finding import Finding, Source
from aftercheck_worker.text.content import denies
from aftercheck_worker.text.normalise import flat
from aftercheck_worker.text.tokens import words


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the doctrine."""

    subtype: ClaimSubtype
    kinds: frozenset[EvidenceKind]
    reason: str


RULES: Final = (
    Rule(subtype="action_done", kinds=frozenset({"action_log", "tool_result"}), reason="no_action_log"),
    Rule(subtype="system_state", kinds=frozenset({"telemetry", "tool_result", "action_log"}), reason="no_telemetry"),
)

REPEATED: Final = 0.9
MIN_TERMS: Final = 4
_TOOL_WORD: Final = re.compile(r"[a-z]+|\d+", re.IGNORECASE)
_VERBS: Final[tuple[tuple[str, str], ...]] = (
    (
        r"sent|send|e-?mail|wysła|wysłan|przesła|надіслан|надісла|відправ|отправ|gesendet|geschickt|versendet|verschickt",
        "send mail email post notify message",
    ),
    (r"sav|zapis|збере|зберіг|сохран|gespeichert", "save store write persist put update"),
    (r"delet|remov|usun|видал|удал|gelöscht|entfernt", "delete remove drop purge erase"),
    (r"creat|utworz|створ|созда|erstellt|made", "create add insert make new open"),
    (
        r"updat|chang|zaktualiz|zmien|онов|змін|обнов|измен|aktualisiert|geändert",
        "update set patch edit change modify",
    ),
    (r"book|reserv|zarezerw|забронь|забронир|gebucht", "book reserve reservation booking"),
    (r"cancel|anulow|odwoł|скасов|отмен|storniert", "cancel void"),
    (r"refund|return|zwróc|поверн|верну|возвращ|erstattet", "refund return"),
    (r"upload|hochgeladen|завантаж|загруз", "upload put"),
    (
        r"start|restart|launch|running|uruchom|запущ|перезапу|gestartet|läuft|працює|работает|działa",
        "start restart launch run begin",
    ),
    (r"stop|zatrzym|зупин|останов|gestoppt", "stop halt kill shutdown"),
    (r"schedul|plan", "schedule plan"),
    (r"order|zamów|замов|заказ|bestellt", "order purchase buy"),
    (r"clos|zamkn|закри|закры|geschlossen", "close"),
    (r"pay|paid|transfer|przel|переказ|перевед|überwiesen|bezahlt", "pay transfer"),
    (r"add|doda|додан|дода|добав|hinzugefügt", "add insert append"),
    (r"install|zainstal|встанов|установ|installiert", "install"),
    (r"mov|przenie|переміщ|перемещ|verschoben", "move rename"),
    (r"cop|skopiow|скопі|скопир|kopiert", "copy"),
    (r"approv|zatwierdz|підтвердж|подтвержд|genehmigt", "approve confirm"),
)
_STOP: Final = frozenset(
    {
        "the",
        "file",
        "message",
        "have",
        "has",
        "been",
        "was",
        "were",
        "your",
        "successfully",
        "now",
        "just",
        "already",
        "result",
        "true",
        "none",
        "done",
        "get",
    }
)


def check(subject: Subject, alignment: Alignment, failed: Sequence[Source]) -> Iterator[Finding]:
    """Yield the doctrine's findings. `failed` holds the results of tools that failed."""
    rule = next((rule for rule in RULES if rule.subtype == subject.claim.subtype), None)
    if rule is None:
        return
    tools = [source for source in alignment.sources if source.kind in rule.kinds]
    attempts = [source for source in failed if source.kind in rule.kinds]
    done = _matching(subject, tools)
    tried = _matching(subject, attempts)
    denied = subject.negated or denies(flat(subject.claim.text), subject.language)
    if done is None and tried is not None:
        yield _on_failure(tried, denied)
    elif done is not None and rule.subtype == "action_done" and denied:
        yield Finding(
            kind="action", effect="convict", status="contradicted", reason="action_was_done", evidence=(_whole(done),)
        )
    elif done is not None:
        yield Finding(kind="action", effect="support", reason="action_logged", evidence=(_whole(done),))
    elif not tools and not attempts and _stated(subject, alignment):
        yield Finding(kind="doctrine", effect="escalate", reason=rule.reason, strength=0.5)
    elif not tools and not (attempts and denied):
        yield Finding(kind="doctrine", effect="convict", status="not_found", reason=rule.reason)
    elif rule.subtype == "action_done" and not denied:
        yield Finding(kind="action", effect="cap", status="not_found", reason="action_not_logged")


def _stated(subject: Subject, alignment: Alignment) -> bool:
    """No tool ran at all and a document says the same: then the answer repeats the document."""
    shares = (alignment.overlap(subject, line) for _, line in alignment.candidates(subject)[:4])
    return len(subject.terms) >= MIN_TERMS and any(share >= REPEATED for share in shares)


def _on_failure(tried: Source, denied: bool) -> Finding:
    if denied:
        return Finding(kind="action", effect="support", reason="action_failed", evidence=(_whole(tried),))
    return Finding(
        kind="action", effect="convict", status="contradicted", reason="action_failed", evidence=(_whole(tried),)
    )


def _whole(source: Source) -> Evidence:
    return source.span(0, min(len(source.text), 600), 1.0)


def _matching(subject: Subject, tools: Sequence[Source]) -> Source | None:
    """Return the tool call that did what the claim says: a word for its verb stands in the tool's name or text."""
    wanted = _wanted(flat(subject.claim.text).lower())
    for source in reversed(tools):
        held = {word.lower()[:5] for word in _TOOL_WORD.findall(f"{source.name} {source.text[:4000]}")}
        if wanted & held:
            return source
    return None


def _wanted(text: str) -> set[str]:
    """Stems of the claim's verbs in the language of tools, which is English; of all its content words without one."""
    found: set[str] = set()
    for rule, verbs in _VERBS:
        if re.search(rf"(?<!\w)(?:{rule})", text):
            found |= {verb[:5] for verb in verbs.split()}
    own = {word.low[:5] for word in words(text) if len(word.low) > 3 and word.low not in _STOP}
    verbs_only = {word[:4] for word in own}
    return found | {stem for stem in own if not found} | {stem for stem in verbs_only if not found}
