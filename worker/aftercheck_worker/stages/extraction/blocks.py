"""Delimited context inside a prompt (context E): tags, fences, and labels in five languages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from aftercheck_worker.stages.extraction.labels import Label, cue, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_LABEL: Final = re.compile(
    r"^[ \t>#*\[(_]*+([^\W\d_][^\n:：*\]#]{0,40}?)[ \t*\])_]*+[:：][*_]*+[ \t]*+", re.MULTILINE
)
_HEADING: Final = re.compile(r"^[ \t]*#{1,6}[ \t]+\**([^\n:*#]{1,40}?)\**+[ \t]*+$", re.MULTILINE)
_INLINE: Final = re.compile(
    r"(?<=[.!?»”\")\]…])[ \t]+(Question|User question|Query|Pytanie|Zapytanie|Запитання|Питання|Запит|Вопрос|Запрос|"
    r"Frage|Anfrage)[ \t]*[:：][ \t]*"
)
_FENCE: Final = re.compile(r"^[ \t]*(-{3,}|={3,}|_{3,}|`{3,}|~{3,}|\"{3,}|'{3,}|\*{3,})[\w]*[ \t]*$", re.MULTILINE)
_OPEN: Final = re.compile(
    r"<(context|contexts|documents|document|docs|doc|sources|source|passages|passage|excerpts|excerpt|knowledge|"
    r"knowledge_base|search_results|search_result|retrieved_context|retrieved_documents|information|background|"
    r"kontekst|dokumenty|контекст|документи|документы|kontext|dokumente)(\s[^<>]{0,300})?>",
    re.IGNORECASE,
)
_ITEM: Final = re.compile(
    r"<(document|doc|source|passage|excerpt|item|chunk|search_result|result)(\s[^<>]{0,300})?>", re.I
)
_ATTRIBUTE: Final = re.compile(r"""\b(?:id|index|name|source|title)\s*=\s*["']([^"']{1,200})["']""", re.IGNORECASE)
_META: Final = re.compile(r"<(source|title|url|id|index)>([^<]{0,500})</\1>\s*", re.IGNORECASE)
_WRAPPER: Final = re.compile(r"</?(?:document_contents?|content|text|page_content)>", re.IGNORECASE)
_NUMBERED: Final = re.compile(
    r"^[ \t]*(?:\[(\d{1,3})\]|(?:document|doc|source|passage|chunk|excerpt|fragment|dokument|źródło|документ|джерело|"
    r"источник|фрагмент|уривок|отрывок|quelle|abschnitt)[ \t]*[#№]?[ \t]*\[?(\d{1,3})\]?)"
    r"[ \t]*(?:[:.)\-–][ \t]*|\n|(?<=\])[ \t]*)",
    re.MULTILINE | re.IGNORECASE,
)
_MAX_TAGS: Final = 300
_MAX_LABELS: Final = 2_000


class Block(NamedTuple):
    """One piece of context. `source_id` is the number or name that the prompt gives it, "" for none."""

    text: str
    source_id: str = ""


class Template(NamedTuple):
    """A prompt taken apart.

    Attributes:
        found: the prompt has a place for context, be it empty.
        blocks: the context, without labels and delimiters.
        question: text after the question label, "" when there is none.
        rest: the prompt without its context.
    """

    found: bool
    blocks: tuple[Block, ...]
    question: str
    rest: str


def parse(text: str) -> Template:
    """Take one message apart. Linear in its length; never raises."""
    if "<" in text and (tagged := _tagged(text)) is not None:
        return tagged
    if (fenced := _fenced(text)) is not None:
        return fenced
    labels = _labels(text)
    if labels and (labelled := _labelled(text, labels)) is not None:
        return labelled
    return Template(found=False, blocks=(), question=_asked(text, labels), rest=text)


def _tagged(text: str) -> Template | None:
    lowered = text.lower()
    blocks: list[Block] = []
    kept: list[str] = []
    position, missing = 0, set[str]()
    for _ in range(_MAX_TAGS):
        opened = _OPEN.search(text, position)
        if opened is None:
            break
        tag = opened.group(1).lower()
        end = -1 if tag in missing else lowered.find(f"</{tag}>", opened.end())
        kept.append(text[position : opened.start() if end >= 0 else opened.end()])
        if end < 0:
            missing.add(tag)
            position = opened.end()
            continue
        blocks.extend(_items(text[opened.end() : end], opened.group(2) or ""))
        position = end + len(tag) + 3
    else:
        missing.clear()
    rest = "".join(kept) + text[position:]
    if not blocks and len(rest) == len(text):
        return None
    return Template(True, tuple(blocks), _asked(rest, _labels(rest)), rest)


def _items(inner: str, attributes: str) -> list[Block]:
    """The documents inside a tag, or the tag's own text."""
    lowered = inner.lower()
    found: list[Block] = []
    position = 0
    for _ in range(_MAX_TAGS):
        opened = _ITEM.search(inner, position)
        if opened is None:
            break
        tag = opened.group(1).lower()
        end = lowered.find(f"</{tag}>", opened.end())
        if end < 0 or (tag == "source" and "\n" not in inner[opened.end() : end] and end - opened.end() < 200):
            position = opened.end()
            if end < 0:
                break
            continue
        found.append(_item(inner[opened.end() : end], opened.group(2) or ""))
        position = end + len(tag) + 3
    if not found:
        return [block for block in [_item(inner, attributes)] if block.text] and _split(_item(inner, attributes))
    return [block for block in found if block.text]


def _item(inner: str, attributes: str) -> Block:
    named = _ATTRIBUTE.search(attributes)
    source = named.group(1) if named else ""
    meta = _META.search(inner)
    if meta is not None:
        source = source or meta.group(2).strip()
        inner = _META.sub("", inner)
    return Block(_WRAPPER.sub("", inner).strip(), source)


def _fenced(text: str) -> Template | None:
    """LlamaIndex writes dashes around the context; the words before the first fence say that it is one."""
    fences = [match for _, match in zip(range(_MAX_TAGS), _FENCE.finditer(text), strict=False)]
    for position, first in enumerate(fences[:-1]):
        same = [fence for fence in fences[position + 1 :] if fence.group(1)[0] == first.group(1)[0]]
        if same and cue(text[max(0, first.start() - 300) : first.start()]):
            last = same[-1]
            inner = text[first.end() : last.start()]
            pieces = re.split(_FENCE, inner)[::2] if len(same) > 1 else [inner]
            blocks = [block for piece in pieces if piece.strip() for block in _split(Block(piece.strip()))]
            rest = text[: first.start()] + text[last.end() :]
            return Template(True, tuple(blocks), _asked(rest, _labels(rest)), rest)
    return None


def _labels(text: str) -> list[Label]:
    """Lines that start with a known label, in order."""
    if ":" not in text and "：" not in text and "#" not in text:
        return []
    found = list(_matches(text))
    found.sort()
    return found


def _matches(text: str) -> Iterator[Label]:
    for count, match in enumerate(_LABEL.finditer(text)):
        if (kind := kind_of(match.group(1))) is not None:
            yield Label(match.start(), match.end(), kind)
        if count > _MAX_LABELS:
            return
    if "#" in text:
        for match in _HEADING.finditer(text):
            if (kind := kind_of(match.group(1))) is not None:
                yield Label(match.start(), match.end(), kind)


def _labelled(text: str, labels: list[Label]) -> Template | None:
    questions = [label for label in labels if label.kind == "question"]
    start = next((label for label in labels if label.kind == "context"), None)
    if start is None and questions:
        start = next((label for label in labels if label.kind == "weak_context"), None)
    if start is None:
        return None
    asked = _question_label(text, questions, labels, start)
    if asked is None and (inline := _INLINE.search(text, start.end)) is not None:
        asked = Label(inline.start(), inline.end(), "question")
    if asked is not None and asked.start > start.start:
        block, question = text[start.end : asked.start], _tail(text, asked, labels)
        rest = text[: start.start] + text[asked.start :]
    else:
        block, tail = _open_block(text[start.end :], labels, start)
        question = text[asked.end : start.start].strip() if asked is not None else ""
        rest = text[: start.start] + tail
    block = _without_history(block, labels, start)
    blocks = tuple(_split(Block(block.strip()))) if block.strip() else ()
    return Template(True, blocks, question, rest)


def _question_label(text: str, questions: list[Label], labels: list[Label], start: Label) -> Label | None:
    """The last question that has no answer under it: documents may be FAQs themselves."""
    for asked in reversed(questions):
        if asked.start < start.start:
            return asked
        answer = next((label for label in labels if label.kind == "answer" and label.start >= asked.end), None)
        if answer is None or not text[answer.end :].strip():
            return asked
    return None


def _tail(text: str, asked: Label, labels: list[Label]) -> str:
    ends = [label.start for label in labels if label.start >= asked.end and label.kind in ("answer", "history")]
    return text[asked.end : min(ends, default=len(text))].strip()


def _open_block(block: str, labels: list[Label], start: Label) -> tuple[str, str]:
    """A context that no question label ends: a last paragraph that asks is the question, not evidence."""
    answer = next((label for label in reversed(labels) if label.kind == "answer"), None)
    if answer is not None and answer.start > start.end:
        cut = answer.start - start.end
        if not block[answer.end - start.end :].strip():
            block = block[:cut]
    head, _, last = block.rstrip().rpartition("\n\n")
    if head.strip() and last.rstrip().endswith(("?", "？")):
        return head, last
    return block, ""


def _without_history(block: str, labels: list[Label], start: Label) -> str:
    """A chat history inside the prompt holds the assistant's own words, which prove nothing."""
    for label in labels:
        if label.kind == "history" and start.end <= label.start < start.end + len(block):
            return block[: label.start - start.end]
    return block


def _asked(text: str, labels: list[Label]) -> str:
    questions = [label for label in labels if label.kind == "question"]
    return _tail(text, questions[-1], labels) if questions else ""


def _split(block: Block) -> list[Block]:
    """One block per numbered document, so that a citation such as [2] finds its source."""
    marks = list(_NUMBERED.finditer(block.text))
    if len(marks) < 2 or block.text[: marks[0].start()].strip():
        return [block]
    ends = [mark.start() for mark in marks[1:]] + [len(block.text)]
    pieces = [
        Block(block.text[mark.end() : end].strip(), mark.group(1) or mark.group(2))
        for mark, end in zip(marks, ends, strict=True)
    ]
    return [piece for piece in pieces if piece.text]
