"""Claims of an answer: which spans say something that can be checked, and of what type (R9, R18).

No model and no rewriting: a claim is a sentence, a list item, a table row, a clause that stands for itself, an
item of an enumeration, or an argument in code. Everything that is skipped is kept with a reason code, so that the
extractor's recall can be measured.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from aftercheck_schemas.evaluation import Claim
from aftercheck_schemas.interaction import Interaction
from aftercheck_schemas.vocabulary import ClaimSubtype, ClaimType, Severity
from aftercheck_worker.text.language import detect
from aftercheck_worker.text.lexicon import Category, Language, load, matches, pattern
from aftercheck_worker.text.normalise import flat, plain
from aftercheck_worker.text.sentences import Block, Span, blocks, sentences, trim

SKIP_REASONS: Final = (
    "greeting", "question", "offer", "hedge", "refusal", "meta", "opinion", "heading", "code", "plan",
)  # fmt: skip
"""Closed list of reasons in `Claim.skip_reason`."""

ACTION_KINDS: Final = frozenset({"tool_result", "action_log", "telemetry"})
_CITATION: Final = re.compile(
    r"\[(\^?[\w.:/-]{1,40}(?:\s*[,;]\s*\^?[\w.:/-]{1,40})*)\](?!\()|【([^】\n]{1,60})】"
    r"|\((?:source|src|doc|ref)[: ]+([\w.:/ -]{1,60})\)",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"[\w.:/-]+")
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_DIGIT: Final = re.compile(r"\d")
_QUOTED: Final = re.compile(r"[\"“„«]([^\"“”„«»\n]{8,2000})[\"”“»]")
_SINGLE_QUOTED: Final = re.compile(r"(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){8,2000}'(?!\w)")
_CONCESSION: Final = re.compile(
    r"\s*(?:while|although|though|even though|whereas|choć|chociaż|mimo że|obwohl|zwar|хотя|хоча)\b[^,\n]{8,300},\s+",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"`[^`\n]+`|\{[\w.]+\}|\b\w+\(\)|--[a-z][\w-]+")
_CALL: Final = re.compile(r"([A-Za-z_][\w.]*)\(([^()\n]*(?:\([^()\n]*\)[^()\n]*)*)\)")
_KEYWORD: Final = re.compile(r"\b([A-Za-z_]\w*)\s*=\s*(?!=)(\"[^\"\n]*\"|'[^'\n]*'|[^,()\n]+)")
_CHECKABLE_CODE: Final = re.compile(
    r"\w\(|^\s*(?:import|from|\$|pip|npm|curl|docker|kubectl|git)\b|https?://|--\w|=", re.MULTILINE
)
_DATE: Final = re.compile(r"\b(?:1[5-9]|20)\d\d\b|\b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b")
_NAME: Final = re.compile(r"(?<=[^\s.!?:])\s+[\"'(]*([A-ZÀ-ÖØ-ÞĄĆĘŁŃŚŹŻ\u0400-\u042f\u0490][\w'’-]+)")
_ENTITY_CODE: Final = re.compile(r"\b[A-Z][A-Z0-9-]{1,}\b|https?://\S+|\b[\w.+-]{1,64}@[\w-]{1,63}\.\w+")
_ENUMERATION: Final = re.compile(
    r"\s*(?:,|;|\band\b|\boder\b|\bund\b|\boraz\b|\bor\b|(?<=\s)(?:i|и|і|й|та|или|або|lub)(?=\s))\s*"
)
PLAN_HEAD: Final = 40
OPINION_TERMS: Final = 6
_LATER: Final = re.compile(r" ?[,;] (?:(?:and|but|because|since|as|so) )?| (?:but|because|since) ")
_SPEAKER: Final = re.compile(r"\b(?:i|we|me|us|my|our|mine)\b", re.IGNORECASE)
MAX_KNOWN: Final = 20_000
MAX_KNOWN_PASSAGES: Final = 50
INTRODUCTIONS: Final = frozenset({"heading", "meta"})
"""Skip reasons of text that leads in to something else."""


_SIBLINGS: Final[dict[Language, tuple[Language, ...]]] = {
    "en": ("en",),
    "pl": ("pl", "en"),
    "de": ("de", "en"),
    "uk": ("uk", "ru", "en"),
    "ru": ("ru", "uk", "en"),
    "other": ("en", "pl", "de"),
}
"""Languages whose patterns are tried: short sentences are easily taken for a sibling's."""


class _Draft(msgspec.Struct, frozen=True):
    """A span with what was decided about it so far."""

    start: int
    end: int
    premise: str = ""
    reason: str | None = None
    type: ClaimType | None = None
    low: bool = False


class _Reader(msgspec.Struct, frozen=True):
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


def split(interaction: Interaction) -> tuple[Claim, ...]:
    """Return every span of the answer, checkable or skipped, in order; `answer[c.start:c.end] == c.text`.

    Never raises on any text. An empty or blank answer has no claims. A response of one to three words, or a bare
    yes or no, is a claim about the question, which stands in `premise`.
    """
    answer = interaction.answer
    if not answer.strip():
        return ()
    reader = _reader(interaction)
    whole = trim(answer, 0, len(answer))
    if _is_short(answer):
        return (_claim(1, _short(reader, whole), reader),)
    drafts = [draft for block, lead in _with_lead(reader) for draft in _of_block(block, lead, reader)]
    if all(draft.reason in INTRODUCTIONS for draft in drafts):
        drafts = [_said(draft, interaction, reader) for draft in drafts]
    return tuple(_claim(number, draft, reader) for number, draft in enumerate(drafts, 1))


def _said(draft: _Draft, interaction: Interaction, reader: _Reader) -> _Draft:
    """An introduction that introduces nothing is the whole answer: it is a claim when it speaks of the evidence."""
    known = " ".join([interaction.question, *(p.text[:MAX_KNOWN] for p in interaction.passages[:MAX_KNOWN_PASSAGES])])
    shared = _terms(reader.flat[draft.start : draft.end], reader.language) & _terms(known, reader.language)
    return msgspec.structs.replace(draft, reason=None) if shared else draft


def _reader(interaction: Interaction) -> _Reader:
    answer = interaction.answer
    language = detect(answer + "\n" + interaction.question[:500])
    tools = any(passage.kind in ACTION_KINDS for passage in interaction.passages)
    return _Reader(answer, flat(answer), language, interaction.question, tools)


def _is_short(answer: str) -> bool:
    return len(answer) < 200 and len(_WORD.findall(answer)) <= 3 and "\n" not in answer.strip()


def _short(reader: _Reader, span: Span) -> _Draft:
    text = reader.flat[span.start : span.end]
    for reason in ("refusal", "greeting", "offer", "question", "hedge", "opinion"):
        if reader.has(reason, text) and not reader.has("yes_no", text):
            return _Draft(span.start, span.end, reader.question, reason)
    return _Draft(span.start, span.end, reader.question)


def _with_lead(reader: _Reader) -> Iterator[tuple[Block, str]]:
    """Blocks with the text that leads them in: the header of a table, the sentence before a list."""
    lead = ""
    table = ""
    for block in blocks(reader.answer):
        text = reader.answer[block.start : block.end]
        if block.kind == "table_head":
            table = text
            yield block, ""
        elif block.kind == "row":
            yield block, table
        elif block.kind == "item":
            yield block, lead
        else:
            table = ""
            yield block, ""
            lead = _lead(text) if block.kind != "code" else ""


def _lead(text: str) -> str:
    last = text[-300:].rstrip()
    if not last.endswith((":", "：")):
        return ""
    return re.split(r"(?<=[.!?])\s|\n", last)[-1].strip().rstrip(":").strip()


def _of_block(block: Block, lead: str, reader: _Reader) -> Iterator[_Draft]:
    if block.kind in ("heading", "table_head"):
        yield _Draft(block.start, block.end, reason="heading")
    elif block.kind == "row":
        yield _Draft(block.start, block.end, premise=lead)
    elif block.kind == "code":
        yield from _of_code(block, reader)
    else:
        for sentence in sentences(reader.answer, block.start, block.end, reader.language):
            for draft in _of_sentence(sentence, reader):
                premise = draft.premise or (lead if draft.reason is None else "")
                yield msgspec.structs.replace(draft, premise=premise)


def _of_code(block: Block, reader: _Reader) -> Iterator[_Draft]:
    """Keyword arguments of calls are claims of their own: an invented one is the usual error."""
    text = reader.answer[block.start : block.end]
    found = False
    for call in _CALL.finditer(text):
        for argument in _KEYWORD.finditer(call.group(2)):
            found = True
            start = block.start + call.start(2) + argument.start()
            span = trim(reader.answer, start, start + argument.end() - argument.start())
            yield _Draft(span.start, span.end, premise=call.group(1), type="code")
    if not found:
        reason = None if _CHECKABLE_CODE.search(text) else "code"
        for span in _code_pieces(reader.answer, block):
            yield _Draft(span.start, span.end, reason=reason, type="code")


def _code_pieces(text: str, block: Block) -> Iterator[Span]:
    start = block.start
    while start < block.end:
        stop = block.end if block.end - start <= 700 else text.rfind("\n", start + 1, start + 700)
        stop = stop if stop > start else min(start + 700, block.end)
        span = trim(text, start, stop)
        if span.end > span.start:
            yield span
        start = stop


def _of_sentence(span: Span, reader: _Reader) -> Iterator[_Draft]:
    text = reader.flat[span.start : span.end]
    if reader.has("refusal", text):
        yield from _of_refusal(span, reader)
        return
    reason = _skip_reason(text, reader)
    if reason is not None:
        yield _Draft(span.start, span.end, reason=reason)
        return
    body = _without_prefix(span, reader)
    low = text.startswith("(") and text.rstrip(".").endswith(")")
    for clause in _clauses(body, reader):
        for draft in _enumerated(clause, reader):
            yield msgspec.structs.replace(draft, low=low)


def _of_refusal(span: Span, reader: _Reader) -> Iterator[_Draft]:
    """Cut at contrasts and after concessions, so that an answer given beside a refusal stays a claim."""
    conceded = _CONCESSION.match(reader.flat, span.start, span.end)
    if conceded is not None and not reader.has("refusal", reader.flat[conceded.end() : span.end]):
        yield _Draft(span.start, conceded.end(), reason="refusal")
        yield from _of_sentence(trim(reader.answer, conceded.end(), span.end), reader)
        return
    for part in _cut_at(span, reader, "contrast"):
        text = reader.flat[part.start : part.end]
        if reader.has("refusal", text) or not _WORD.search(text):
            yield _Draft(part.start, part.end, reason="refusal")
        else:
            yield _Draft(part.start, part.end, reason=_skip_reason(text, reader))


def _cut_at(span: Span, reader: _Reader, category: Category) -> Iterator[Span]:
    start = span.start
    text = reader.flat
    for found in pattern(reader.language, category).finditer(text, span.start, span.end):
        piece = trim(text, start, found.start())
        if piece.end > piece.start:
            yield piece
        start = found.end()
    last = trim(text, start, span.end)
    if last.end > last.start:
        yield last


def _skip_reason(text: str, reader: _Reader) -> str | None:
    bare = _QUOTED.sub(lambda found: '"' + " " * (len(found.group()) - 2) + '"', text)
    bare = _SINGLE_QUOTED.sub(lambda found: " " * len(found.group()), bare).strip(" *_'()")
    if not _WORD.search(bare):
        return None if _WORD.search(text) else "meta"
    for reason in ("offer", "question", "greeting", "handover", "meta", "hedge", "opinion"):
        if reader.has(reason, bare):
            if reason in ("handover", "meta", "offer") and reader.has("action_first_person", bare):
                continue
            if reason == "opinion" and _says_more(bare, reader):
                continue
            return {"handover": "offer"}.get(reason, reason)
    if reader.has("plan", bare[:PLAN_HEAD]) and not reader.has("action_first_person", bare):
        return "plan"
    if bare.endswith(":") and not _DIGIT.search(bare):
        return "heading"
    return None


def _says_more(text: str, reader: _Reader) -> bool:
    """Does a sentence that opens as an opinion also say what can be checked?

    "I like that the hero is played by ..." does, and "I love shellfish, but most kinds aren't harvested" does: a
    later clause of its own, not about the speaker.
    """
    if len(_terms(text, reader.language)) > OPINION_TERMS:
        return True
    verbs = _verbs(reader.language)
    later = _LATER.split(text)[1:]
    return any(_is_clause(part, verbs) and not _SPEAKER.search(part) for part in later)


def _without_prefix(span: Span, reader: _Reader) -> Span:
    """Leave "Based on the context," out of the claim."""
    start = span.start
    for language in dict.fromkeys((reader.language, "en")):
        found = pattern(language, "meta_prefix").match(reader.flat[start : span.end])
        if found is not None and start + found.end() < span.end:
            start += found.end()
    return trim(reader.answer, start, span.end)


def _clauses(span: Span, reader: _Reader) -> Iterator[Span]:
    """Cut at a coordinator where both sides are clauses: each has a subject and a finite verb."""
    verbs = _verbs(reader.language)
    start = span.start
    for found in pattern(reader.language, "coordinator").finditer(reader.flat, span.start, span.end):
        left = reader.flat[start : found.start()]
        right = reader.flat[found.end() : span.end]
        if _is_clause(left, verbs) and _is_clause(right, verbs) and '"' not in left[-1:]:
            if left.count('"') % 2 or left.count("(") != left.count(")"):
                continue
            yield trim(reader.answer, start, found.start())
            start = found.end()
    yield trim(reader.answer, start, span.end)


def _is_clause(text: str, verbs: frozenset[str]) -> bool:
    words = [word.lower() for word in _WORD.findall(text[:300])]
    at = next((index for index, word in enumerate(words) if word in verbs), -1)
    return 1 <= at <= 6 and len(words) >= 3


def _verbs(language: Language) -> frozenset[str]:
    return frozenset(load(language).finite_verbs)


def _enumerated(span: Span, reader: _Reader) -> Iterator[_Draft]:
    """Split `X includes A, B and C` into one claim per item; the head is the premise of the later ones."""
    head = pattern(reader.language, "includes").search(reader.flat, span.start, span.end)
    items = _items(reader, head.end(), span.end) if head is not None else []
    if head is None or len(items) < 3 or head.end() - span.start < 4:
        yield _Draft(span.start, span.end)
        return
    premise = reader.answer[span.start : head.end()].strip()
    yield _Draft(span.start, items[0].end)
    for item in items[1:]:
        yield _Draft(item.start, item.end, premise=premise)


def _items(reader: _Reader, start: int, end: int) -> list[Span]:
    text = reader.flat[start:end]
    if "," not in text or '"' in text or "(" in text or len(text) > 300:
        return []
    spans: list[Span] = []
    position = 0
    for found in _ENUMERATION.finditer(text):
        spans.append(trim(text, position, found.start()))
        position = found.end()
    spans.append(trim(text, position, len(text)))
    spans = [Span(start + s.start, start + s.end) for s in spans if s.end > s.start]
    words = [len(_WORD.findall(reader.flat[s.start : s.end])) for s in spans]
    return spans if words and max(words) <= 4 and min(words) >= 1 else []


def _claim(number: int, draft: _Draft, reader: _Reader) -> Claim:
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


def _typed(text: str, draft: _Draft, reader: _Reader) -> tuple[ClaimType, ClaimSubtype | None]:
    subtype = _subtype(text, reader)
    if draft.type is not None:
        return draft.type, subtype if draft.type != "code" else None
    if draft.reason == "plan":
        return "plan", None
    quoted = _QUOTED.search(text)
    if quoted is not None and len(_WORD.findall(quoted.group(1))) >= 3:
        return "quote", "attribution" if reader.has("attribution", text) else subtype
    if _CODE.search(text):
        return "code", subtype
    if _has_number(text, reader.language):
        return "number", subtype
    if reader.has("causal", text):
        return "causal", subtype
    return "fact", subtype


def _subtype(text: str, reader: _Reader) -> ClaimSubtype | None:
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
    bare = _CITATION.sub(" ", text)
    if _DIGIT.search(bare):
        return True
    own = load(language)
    words = [word.lower() for word in _WORD.findall(bare)]
    return any(own.numbers.get(word, 0) > 1 or (word in own.scales and len(word) > 2) for word in words)


def _has_month(text: str, language: Language) -> bool:
    months = load(language).months
    return any(
        word.lower() in months and word.lower() not in ("may", "mar", "jan") for word in _WORD.findall(text)[:80]
    )


def _severity(kind: ClaimType, subtype: ClaimSubtype | None, text: str, draft: _Draft, reader: _Reader) -> Severity:
    if draft.reason is not None or draft.low:
        return "low"
    if kind in ("number", "quote") or subtype in ("action_done", "system_state"):
        return "high"
    return "high" if reader.has("high_severity", text) else "medium"


def _citations(answer: str, draft: _Draft) -> tuple[str, ...]:
    """Labels of the citation markers in the claim, or right behind it."""
    text = answer[draft.start : draft.end]
    behind = re.match(r"\s?(?:\[[^\]\n]{1,40}\])+", answer[draft.end : draft.end + 80])
    labels: list[str] = []
    for found in _CITATION.finditer(text + (behind.group() if behind else "")):
        inner = next(group for group in found.groups() if group is not None)
        labels += [label.strip("^") for label in _LABEL.findall(inner)]
    return tuple(labels)


def abstains(question: str, answer: str, claims: tuple[Claim, ...]) -> bool:
    """Does the answer leave every part of the question open?

    True when it says that evidence is lacking, asks for clarification or hands over to a human, and no claim of it
    answers the question. A claim that only describes the sources ("The index lists a section 4.2") answers nothing.

    Args:
        question: the user's question, may be empty.
        answer: the answer that `claims` were split from.
        claims: the result of `split`.
    """
    if not any(claim.skip_reason in ("refusal", "question", "offer") for claim in claims):
        return False
    language = detect(answer + "\n" + question[:500])
    reader = _Reader(answer, flat(answer), language, question, False)
    refusals = [claim for claim in claims if claim.skip_reason == "refusal"]
    asks = [
        c
        for c in claims
        if c.skip_reason == "question" or (c.skip_reason == "offer" and reader.has("handover", flat(c.text)))
    ]
    rest = [claim for claim in claims if claim.verifiable]
    if refusals:
        lacking = _question_terms(question, language) & _terms(" ".join(c.text for c in refusals), language)
        return not any(_answers(claim, lacking, reader) for claim in rest)
    return bool(asks) and not rest and bool(question.strip())


def _answers(claim: Claim, lacking: frozenset[str], reader: _Reader) -> bool:
    text = flat(plain(claim.text))
    if reader.has("sources", text):
        return False
    if not lacking or reader.has("pronoun_start", text) or claim.premise:
        return True
    if reader.question.count("?") > 1 or re.search(r"\b(?:and|und|i|oraz|и|і|та|й)\b", reader.question):
        return True
    return bool(_terms(text, reader.language) & lacking)


def _terms(text: str, language: Language) -> frozenset[str]:
    stop = load(language).stopwords
    return frozenset(w.lower()[:6] for w in _WORD.findall(plain(text)) if len(w) > 2 and w.lower() not in stop)


def _question_terms(question: str, language: Language) -> frozenset[str]:
    return _terms(question, language)
