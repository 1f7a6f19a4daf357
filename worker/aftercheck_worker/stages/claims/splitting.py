"""From an answer to its claims: blocks, sentences, clauses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from aftercheck_schemas.evaluation import Claim
from aftercheck_schemas.interaction import Interaction
from aftercheck_worker.stages.claims.clauses import clauses, cut_at, enumerated, without_prefix
from aftercheck_worker.stages.claims.code import of_code
from aftercheck_worker.stages.claims.kind import typed_claim
from aftercheck_worker.stages.claims.reader import WORD, Draft, Reader, content_terms, read
from aftercheck_worker.stages.claims.selection import skip_reason
from aftercheck_worker.text.sentences import Block, Span, blocks, sentences, trim

_CONCESSION: Final = re.compile(
    r"\s*(?:while|although|though|even though|whereas|choć|chociaż|mimo że|obwohl|zwar|хотя|хоча)\b[^,\n]{8,300},\s+",
    re.IGNORECASE,
)
MAX_KNOWN: Final = 20_000
MAX_KNOWN_PASSAGES: Final = 50
INTRODUCTIONS: Final = frozenset({"heading", "meta"})
"""Skip reasons of text that leads in to something else."""


def split(interaction: Interaction) -> tuple[Claim, ...]:
    """Return every span of the answer, checkable or skipped, in order; `answer[c.start:c.end] == c.text`.

    Never raises on any text. An empty or blank answer has no claims. A response of one to three words, or a bare
    yes or no, is a claim about the question, which stands in `premise`.
    """
    answer = interaction.answer
    if not answer.strip():
        return ()
    reader = read(interaction)
    whole = trim(answer, 0, len(answer))
    if _is_short(answer):
        return (typed_claim(1, _short(reader, whole), reader),)
    drafts = [draft for block, lead in _with_lead(reader) for draft in _of_block(block, lead, reader)]
    if all(draft.reason in INTRODUCTIONS for draft in drafts):
        drafts = [_said(draft, interaction, reader) for draft in drafts]
    return tuple(typed_claim(number, draft, reader) for number, draft in enumerate(drafts, 1))


def _said(draft: Draft, interaction: Interaction, reader: Reader) -> Draft:
    """An introduction that introduces nothing is the whole answer: it is a claim when it speaks of the evidence."""
    known = " ".join([interaction.question, *(p.text[:MAX_KNOWN] for p in interaction.passages[:MAX_KNOWN_PASSAGES])])
    shared = content_terms(reader.flat[draft.start : draft.end], reader.language) & content_terms(
        known, reader.language
    )
    return msgspec.structs.replace(draft, reason=None) if shared else draft


def _is_short(answer: str) -> bool:
    return len(answer) < 200 and len(WORD.findall(answer)) <= 3 and "\n" not in answer.strip()


def _short(reader: Reader, span: Span) -> Draft:
    text = reader.flat[span.start : span.end]
    for reason in ("refusal", "greeting", "offer", "question", "hedge", "opinion"):
        if reader.has(reason, text) and not reader.has("yes_no", text):
            return Draft(span.start, span.end, reader.question, reason)
    return Draft(span.start, span.end, reader.question)


def _with_lead(reader: Reader) -> Iterator[tuple[Block, str]]:
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


def _of_block(block: Block, lead: str, reader: Reader) -> Iterator[Draft]:
    if block.kind in ("heading", "table_head"):
        yield Draft(block.start, block.end, reason="heading")
    elif block.kind == "row":
        yield Draft(block.start, block.end, premise=lead)
    elif block.kind == "code":
        yield from of_code(block, reader)
    else:
        for sentence in sentences(reader.answer, block.start, block.end, reader.language):
            for draft in _of_sentence(sentence, reader):
                premise = draft.premise or (lead if draft.reason is None else "")
                yield msgspec.structs.replace(draft, premise=premise)


def _of_sentence(span: Span, reader: Reader) -> Iterator[Draft]:
    text = reader.flat[span.start : span.end]
    if reader.has("refusal", text):
        yield from _of_refusal(span, reader)
        return
    reason = skip_reason(text, reader)
    if reason is not None:
        yield Draft(span.start, span.end, reason=reason)
        return
    body = without_prefix(span, reader)
    low = text.startswith("(") and text.rstrip(".").endswith(")")
    for clause in clauses(body, reader):
        for draft in enumerated(clause, reader):
            yield msgspec.structs.replace(draft, low=low)


def _of_refusal(span: Span, reader: Reader) -> Iterator[Draft]:
    """Cut at contrasts and after concessions, so that an answer given beside a refusal stays a claim."""
    conceded = _CONCESSION.match(reader.flat, span.start, span.end)
    if conceded is not None and not reader.has("refusal", reader.flat[conceded.end() : span.end]):
        yield Draft(span.start, conceded.end(), reason="refusal")
        yield from _of_sentence(trim(reader.answer, conceded.end(), span.end), reader)
        return
    for part in cut_at(span, reader, "contrast"):
        text = reader.flat[part.start : part.end]
        if reader.has("refusal", text) or not WORD.search(text):
            yield Draft(part.start, part.end, reason="refusal")
        else:
            yield Draft(part.start, part.end, reason=skip_reason(text, reader))
